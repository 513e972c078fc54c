{{ config(materialized="view") }}
select name from {{ ref("cities") }} where not is_capital
