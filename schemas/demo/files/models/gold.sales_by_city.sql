-- Each sale with the customer as he was on the day of the sale.
select f.sale_id, f.sale_date, f.amount, f.customer_id, d.customer_name, d.city
from silver.sales f
left join gold.dim_customer_scd2 d
  on f.customer_id = d.customer_id
  and f.sale_date >= d.effective_date
  and (f.sale_date < d.end_date or d.end_date is null)
order by f.sale_id
