-- The queue of a name, as docs/waiting.md has it: entries in the order of
-- (ticket, owner), null when there is none. A turn is no vote: all of this only
-- ever refuses grants. internal/model/queue.go says it in Go.

-- place is where p_owner stands, or null.
create or replace function SCHEMA.place(p_queue SCHEMA.entry[], p_owner bytea) returns int language sql immutable as $$
  select i::int from unnest(p_queue) with ordinality as e(owner, attempt, shared, ticket, until, claim, turn, i)
    where e.owner = p_owner
$$;

-- leave removes the i-th entry.
create or replace function SCHEMA.leave(p_queue SCHEMA.entry[], i int) returns SCHEMA.entry[] language sql immutable as $$
  select case when i is null then p_queue else nullif(p_queue[:i-1] || p_queue[i+1:], '{}') end
$$;

-- enqueue keeps e in place of any entry of its owner. One that moves has no turn.
create or replace function SCHEMA.enqueue(n SCHEMA.lock, e SCHEMA.entry) returns SCHEMA.lock language plpgsql immutable as $$
declare
  i int := SCHEMA.place(n.queue, e.owner);
begin
  if n.queue[i].ticket = e.ticket then
    e.turn := n.queue[i].turn;
    n.queue[i] := e;
  else
    select array_agg(q order by q.ticket, q.owner) into n.queue from unnest(SCHEMA.leave(n.queue, i) || e) q;
  end if;
  return SCHEMA.ending(n, e.until);
end $$;

-- front is how many entries may be granted now: one writer, or the readers
-- before the first writer.
create or replace function SCHEMA.front(n SCHEMA.lock) returns int language sql immutable as $$
  select case
    when n.queue is null or n.owners is not null and not (n.shared and n.queue[1].shared) then 0
    when n.queue[1].shared then coalesce((select min(i)::int - 1
      from unnest(n.queue) with ordinality as e(owner, attempt, shared, ticket, until, claim, turn, i) where not e.shared),
      cardinality(n.queue))
    else 1 end
$$;

-- turns gives their turns to those at the front, drops who let one pass, and
-- takes them from all behind. p_owner is who asks just now, or null: it is alive
-- and is told by its answer. p_number is the counter, or where it would start.
create or replace function SCHEMA.turns(n SCHEMA.lock, p_open boolean, p_number bigint, p_now bigint, p_owner bytea)
returns SCHEMA.lock language plpgsql as $$
declare
  front int := case when p_open then SCHEMA.front(n) else 0 end;
  i int := 1; told boolean := false; e SCHEMA.entry;
begin
  while i <= front loop
    e := n.queue[i];
    if e.owner = p_owner then
      n.queue[i].turn := p_now + e.claim;
    elsif e.turn = 0 then
      n.queue[i].turn := p_now + e.claim;
      told := true;
      perform SCHEMA.tell_waiter('turn', n.name, e.owner, p_number);
    elsif e.turn <= p_now then
      n.queue := SCHEMA.leave(n.queue, i);
      front := SCHEMA.front(n);
      continue;
    end if;
    i := i + 1;
  end loop;
  for j in front + 1 .. coalesce(cardinality(n.queue), 0) loop
    if n.queue[j].turn <> 0 then
      n.queue[j].turn := 0;
    end if;
  end loop;
  e := n.queue[front+1];
  if told and e.owner <> coalesce(p_owner, '') then
    -- Should the turn not be taken, the next in line finds out by itself.
    perform SCHEMA.tell_waiter('next', n.name, e.owner, n.queue[front].claim);
  end if;
  return n;
end $$;

-- tell_waiter tells one waiter. Everybody may listen, and whoever knows an owner
-- can release its lock: so its digest is told.
create or replace function SCHEMA.tell_waiter(p_what text, p_name bytea, p_owner bytea, p_number bigint)
returns void language sql volatile as $$
  select pg_notify('CHANNEL', concat_ws(' ', p_what, encode(p_name, 'hex'), encode(substr(sha256(p_owner), 1, 6), 'hex'), p_number))
$$;
