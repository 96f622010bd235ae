-- A model is one query; its file is named after the table it makes. It runs when a table that it reads has changed.
select city, count(*) as customers
from silver.customer_current
group by city
order by city
