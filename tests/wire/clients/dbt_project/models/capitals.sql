{{ config(materialized="table") }}
select id, name, area from {{ ref("cities") }} where is_capital
