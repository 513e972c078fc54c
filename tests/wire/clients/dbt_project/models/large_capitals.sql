{{ config(materialized="view") }}
select name from {{ ref("capitals") }} where area > 1000
