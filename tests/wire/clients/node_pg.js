const { Client, Pool } = require('pg');
const config = JSON.parse(process.argv[2]);
async function step(name, f) { try { console.log('OK ', name, JSON.stringify(await f())); } catch (e) { console.log('ERR', name, e.code, e.message); } }
(async () => {
  const c = new Client(config); await c.connect();
  c.on('notice', n => console.log('notice', n.message));
  await step('create', async () => (await c.query('CREATE TABLE n (id serial PRIMARY KEY, a integer, b numeric(10,2), c text, d timestamptz, e boolean, f jsonb, g text[], h date, i bytea, j float8, k bigint, u uuid)')).command);
  await step('insert', async () => (await c.query('INSERT INTO n (a,b,c,d,e,f,g,h,i,j,k,u) VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12) RETURNING *', [1, '2.50', 'x', new Date(0), true, {a: 1}, ['p', 'q,"r"'], '2020-01-02', Buffer.from([0, 255]), 0.5, '9007199254740993', '00000000-0000-0000-0000-000000000007'])).rows);
  await step('nulls', async () => (await c.query('INSERT INTO n (a,c) VALUES ($1,$2)', [null, null])).rowCount);
  await step('any', async () => (await c.query('SELECT id FROM n WHERE id = ANY($1::int[]) ORDER BY id', [[1, 2]])).rows);
  await step('any2', async () => (await c.query('SELECT id FROM n WHERE c = ANY($1)', [['x', 'y']])).rows);
  await step('named', async () => { const q = {name: 'q', text: 'SELECT $1::int + $2::int AS s', values: [1, 2]}; await c.query(q); return (await c.query(q)).rows; });
  await step('tx', async () => { await c.query('BEGIN'); await c.query('UPDATE n SET a = a + $1', [1]); await c.query('ROLLBACK'); return (await c.query('SELECT a FROM n WHERE id=1')).rows; });
  await step('multi', async () => (await c.query('SELECT 1 AS a; SELECT 2 AS b')).map(r => r.rows));
  await step('error', async () => (await c.query('SELECT nope FROM n')).rows);
  await step('array mode', async () => (await c.query({text: 'SELECT a, c FROM n ORDER BY id', rowMode: 'array'})).rows);
  await step('limit', async () => (await c.query('SELECT id FROM n ORDER BY id LIMIT $1 OFFSET $2', [1, 1])).rows);
  await step('dates', async () => (await c.query("SELECT now() > $1 AS x, $2::interval AS i", [new Date(0), '1 day'])).rows);
  await c.end();
  const p = new Pool({...config, max: 4});
  await step('pool', async () => (await Promise.all([...Array(10).keys()].map(i => p.query('SELECT $1::int AS i', [i])))).map(r => r.rows[0].i));
  await p.end();
})();
