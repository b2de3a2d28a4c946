-- release removes every attempt of p_owner up to p_attempt. It gives nothing
-- away, so it moves no step and serves clients of every set; it reads the record
-- only where somebody waits.
-- p_entomb is for how long later requests of these attempts are refused, or 0.
create or replace function SCHEMA.release(p_name bytea, p_owner bytea, p_attempt bigint, p_entomb bigint, p_limit bigint,
  out held boolean, out clean boolean) language plpgsql as $$
declare
  n SCHEMA.lock; r SCHEMA.record; now bigint; i int; place int;
begin
  perform SCHEMA.begin_call(p_limit);
  if p_entomb = 0 then
    select * into n from SCHEMA.lock where name = p_name;
    if not coalesce(p_owner = any (n.owners), false) and SCHEMA.place(n.queue, p_owner) is null then
      held := false; clean := true;
      return;
    end if;
  end if;
  select * into n from SCHEMA.lock where name = p_name for no key update;
  if not found then
    perform from SCHEMA.record for share;
    insert into SCHEMA.lock (name) values (p_name) on conflict do nothing;
    select * into n from SCHEMA.lock where name = p_name for no key update;
  end if;
  now := SCHEMA.clock();
  n := SCHEMA.settle_name(n, 0, now);
  i := array_position(n.owners, p_owner);
  held := coalesce(n.attempts[i] <= p_attempt, false);
  place := SCHEMA.place(n.queue, p_owner);
  clean := i is null and place is null;
  if held then
    n := SCHEMA.tell(SCHEMA.drop_vote(n, i));
    n.last := 1;
  end if;
  if n.queue[place].attempt <= p_attempt then
    n.queue := SCHEMA.leave(n.queue, place);
    held := true;
  end if;
  if n.queue is not null then
    select * into r from SCHEMA.record;
    n := SCHEMA.turns(n, r.ends = 0, case when n.known then n.counter else r.step << 26 end, now, null);
  end if;
  if p_entomb > 0 then
    i := array_position(n.tomb_owners, p_owner);
    if i is null then
      n.tomb_owners := n.tomb_owners || p_owner; n.tomb_attempts := n.tomb_attempts || p_attempt;
      n.tomb_until := n.tomb_until || (now + p_entomb);
    else
      n.tomb_attempts[i] := greatest(n.tomb_attempts[i], p_attempt);
      n.tomb_until[i] := greatest(n.tomb_until[i], now + p_entomb);
    end if;
    n := SCHEMA.ending(n, now + p_entomb);
  end if;
  if held or p_entomb > 0 then
    perform SCHEMA.put_name(n);
  end if;
end $$;
