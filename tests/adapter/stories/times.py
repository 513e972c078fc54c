"""Views of intervals and times: equal intervals, an order, sums and differences."""

from tests.adapter.stories import Story

TIMES = Story(
    table="CREATE TABLE calls (id integer NOT NULL, began timestamp, ended timestamp, plan interval, alarm time)",
    views={
        "spent": "SELECT justify_interval(plan) AS plan, count(*) AS n, max(ended - began) AS hi,"
        " sum(ended - began) AS spent FROM calls GROUP BY plan",
    },
    writes=(
        "INSERT INTO calls VALUES (1, '2020-01-31 10:00', '2020-02-01 12:00:00.5', '1 mon', '10:00'),"
        " (2, '2020-01-01', '2020-03-15', '30 days', '23:59:59.999999'), (3, NULL, NULL, NULL, NULL),"
        " (4, '2019-12-31 23:00', '2020-12-31', '720:00', '00:00'), (5, '2020-05-01', '2020-04-01', '1 year', '12:00')",
        "UPDATE calls SET plan = plan + interval '1 day', alarm = alarm + interval '13 hours' WHERE id IN (1, 3, 4)",
    ),
    asked=(
        "SELECT a.id, b.id AS other, a.began + a.plan AS due, extract(epoch FROM a.ended - b.began) AS gap,"
        " b.alarm + (a.ended - a.began) AS alarm, b.plan::text AS plan"
        " FROM calls a JOIN calls b ON a.plan = b.plan AND a.ended > b.began + interval '1 mon 1 day' ORDER BY 1, 2",
        "SELECT id, plan, alarm FROM calls WHERE plan IS NOT NULL ORDER BY plan DESC, id",
    ),
)
