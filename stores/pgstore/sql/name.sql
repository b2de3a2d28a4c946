-- settle_name drops what is over and, with a p_max, brings near what ends later
-- than anybody could have asked for, as after the clock went back. A tombstone
-- may outlast a vote by the limit of a call, which is at most as long again.
create or replace function SCHEMA.settle_name(n SCHEMA.lock, p_max bigint, p_now bigint)
returns SCHEMA.lock language plpgsql as $$
declare
  far bigint := case when p_max > 0 then p_now + p_max else 9223372036854775807 end;
  farther bigint := case when p_max > 0 then p_now + 2 * p_max else 9223372036854775807 end;
  votes int := coalesce(cardinality(n.owners), 0);
begin
  if p_max > 0 then
    n.keep := least(n.keep, far + 600000000);
  end if;
  if n.queue is not null then
    select array_agg((e.owner, e.attempt, e.shared, e.ticket, e.stay, e.claim, e.turn)::SCHEMA.entry order by e.i) into n.queue
      from (select q.owner, q.attempt, q.shared, q.ticket, q.claim, q.i,
          case when p_max > 0 then least(q.until, p_now + 60000000) else q.until end as stay,
          case when p_max > 0 then least(q.turn, p_now + q.claim) else q.turn end as turn
        from unnest(n.queue) with ordinality as q(owner, attempt, shared, ticket, until, claim, turn, i)) e
      where e.stay > p_now;
  end if;
  if n.last_end = 0 or n.first_end > p_now and n.last_end <= far then
    return n;
  end if;
  select array_agg(o), array_agg(a), array_agg(t), array_agg(s), array_agg(least(u, far)), array_agg(l)
    into n.owners, n.attempts, n.tokens, n.since, n.until, n.labels
    from unnest(n.owners, n.attempts, n.tokens, n.since, n.until, n.labels) as v(o, a, t, s, u, l) where least(u, far) > p_now;
  if coalesce(cardinality(n.owners), 0) < votes then
    n.last := 2;
  end if;
  if n.tomb_owners is not null then
    select array_agg(o), array_agg(a), array_agg(least(u, farther)) into n.tomb_owners, n.tomb_attempts, n.tomb_until
      from unnest(n.tomb_owners, n.tomb_attempts, n.tomb_until) as v(o, a, u) where u > p_now;
  end if;
  if n.forced is not null then
    select array_agg(o), array_agg(l), array_agg(least(u, far)) into n.forced, n.forced_labels, n.forced_until
      from unnest(n.forced, n.forced_labels, n.forced_until) as v(o, l, u) where u > p_now;
  end if;
  select coalesce(min(u), 0), coalesce(max(u), 0) into n.first_end, n.last_end
    from (select unnest(n.until || n.tomb_until || n.forced_until) union all select (unnest(n.queue)).until) as v(u);
  return n;
end $$;

-- ending notes that something in the arrays ends at p_end.
create or replace function SCHEMA.ending(n SCHEMA.lock, p_end bigint) returns SCHEMA.lock language plpgsql immutable as $$
begin
  n.first_end := case when n.last_end = 0 then p_end else least(n.first_end, p_end) end;
  n.last_end := greatest(n.last_end, p_end);
  return n;
end $$;

-- put_name writes a row that is locked.
create or replace function SCHEMA.put_name(n SCHEMA.lock) returns void language plpgsql as $$
begin
  update SCHEMA.lock set known = n.known, counter = n.counter, writer = n.writer, last = n.last, keep = n.keep,
    first_end = n.first_end, last_end = n.last_end, watched = n.watched, shared = n.shared,
    owners = n.owners, attempts = n.attempts, tokens = n.tokens, since = n.since, until = n.until, labels = n.labels,
    tomb_owners = n.tomb_owners, tomb_attempts = n.tomb_attempts, tomb_until = n.tomb_until,
    forced = n.forced, forced_labels = n.forced_labels, forced_until = n.forced_until, queue = n.queue
  where name = n.name;
end $$;

-- tell tells whoever watches a name that a vote ended. Notifying takes a lock of
-- the whole server at commit, so it is done only where somebody left a mark.
create or replace function SCHEMA.tell(n SCHEMA.lock) returns SCHEMA.lock language plpgsql as $$
begin
  if n.watched then
    perform pg_notify('CHANNEL', encode(n.name, 'hex'));
    n.watched := false;
  end if;
  return n;
end $$;

-- drop_vote removes the i-th vote.
create or replace function SCHEMA.drop_vote(n SCHEMA.lock, i int) returns SCHEMA.lock language plpgsql immutable as $$
begin
  if cardinality(n.owners) = 1 then
    n.owners := null; n.attempts := null; n.tokens := null; n.since := null; n.until := null; n.labels := null;
  else
    n.owners := n.owners[:i-1] || n.owners[i+1:];
    n.attempts := n.attempts[:i-1] || n.attempts[i+1:];
    n.tokens := n.tokens[:i-1] || n.tokens[i+1:];
    n.since := n.since[:i-1] || n.since[i+1:];
    n.until := n.until[:i-1] || n.until[i+1:];
    n.labels := n.labels[:i-1] || n.labels[i+1:];
  end if;
  return n;
end $$;

-- clean looks at the next rows after p_after, deletes those that are idle, and
-- returns where to go on. The caller holds the record's row, so the step cannot
-- move between this and the next use of a name; rows that others hold are
-- passed over, so it never waits.
create or replace function SCHEMA.clean(p_after bytea, p_rows int, p_step bigint, p_now bigint) returns bytea language plpgsql as $$
declare
  seen bytea[]; idle bytea[];
begin
  select array_agg(l.name order by l.name), array_agg(l.name) filter (
      where l.last_end <= p_now and l.keep <= p_now and l.counter < p_step << 26)
    into seen, idle
    from (select * from SCHEMA.lock where name > p_after order by name limit p_rows) l;
  if idle is not null then
    delete from SCHEMA.lock where name in (
      select l.name from SCHEMA.lock l where l.name = any (idle)
        and l.last_end <= p_now and l.keep <= p_now and l.counter < p_step << 26
        for update skip locked);
  end if;
  return case when cardinality(seen) = p_rows then seen[p_rows] else ''::bytea end;
end $$;
