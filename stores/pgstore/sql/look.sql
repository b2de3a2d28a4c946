-- read_step brings the record up to now, which begins a quarantine that is due,
-- and shows it. The step of a record that was lost is no memory and reads 0.
create or replace function SCHEMA.read_step(
  p_set bigint, p_max bigint, p_limit bigint, p_server text, p_life bigint, p_seen pg_lsn,
  out word text, out reason text, out step bigint, out base bigint, out ends bigint, out over boolean, out rest bigint,
  out server text, out life bigint, out seen pg_lsn) language plpgsql as $$
declare
  r SCHEMA.record; now bigint;
begin
  perform SCHEMA.begin_call(p_limit);
  select * into r from SCHEMA.record;
  if SCHEMA.admits(r, p_set) and SCHEMA.stale(r, SCHEMA.clock(), p_max, p_server, p_life, p_seen) then
    r := SCHEMA.settle(p_set, p_max, p_server, p_life, p_seen);
  end if;
  now := SCHEMA.clock();
  if not SCHEMA.admits(r, p_set) then
    word := 'mismatch'; reason := to_hex(r.serves[1]);
    return;
  end if;
  word := 'granted'; step := case when r.lost then 0 else r.step end; base := r.base; ends := r.ends;
  over := r.ends > 0 and now >= r.ends; rest := case when r.ends > 0 then greatest(r.ends - now, 0) else 0 end;
  server := r.server; life := r.life; seen := pg_current_wal_flush_lsn();
end $$;

-- raise_step ends a quarantine, or begins one. p_life and p_ends are the one that
-- is meant, p_ends 0 none; p_how is quorum, alone, fresh or forgotten.
create or replace function SCHEMA.raise_step(p_meant_server text, p_meant_life bigint, p_meant_ends bigint, p_step bigint, p_how text,
  p_set bigint, p_max bigint, p_limit bigint, p_server text, p_life bigint, p_seen pg_lsn,
  out word text, out reason text, out rest bigint,
  out server text, out life bigint, out seen pg_lsn) language plpgsql as $$
declare
  r SCHEMA.record; now bigint; mark bigint;
begin
  perform SCHEMA.begin_call(p_limit);
  r := SCHEMA.settle(p_set, p_max, p_server, p_life, p_seen);
  now := SCHEMA.clock();
  server := r.server; life := r.life; seen := pg_current_wal_flush_lsn();
  rest := case when r.ends > 0 then greatest(r.ends - now, 0) else 0 end;
  word := 'quarantined';
  if not SCHEMA.admits(r, p_set) then
    word := 'mismatch'; reason := to_hex(r.serves[1]);
    return;
  elsif r.ends <> p_meant_ends or r.ends > 0 and (r.server <> p_meant_server or r.life <> p_meant_life) then
    if r.ends > 0 then
      reason := 'the raise is meant for another quarantine';
    else
      word := 'not held'; reason := 'the quarantine that the raise is meant for is over';
    end if;
    return;
  elsif p_how = 'forgotten' then
    r.ends := now + r.longest;
    r.life := r.life + 1;
  elsif p_how = 'fresh' then
    r.ends := 0; r.lost := false;
  elsif now < r.ends then
    reason := 'the quarantine''s time is not over';
    return;
  elsif greatest(p_step, now / 300000000) >= (1 << 27) - 1 then
    word := 'invalid'; reason := 'the raise would use up the tokens';
    return;
  else
    r.base := (greatest(p_step, r.step, now / 300000000) + 1) << 26;
    if p_how = 'alone' then
      -- Not the clock's next step: a store that lost everything three times
      -- within one step would give the same tokens three times.
      mark := ((now / 300000000) << 26) + ((now % 300000000) << 26) / 300000000;
      r.base := greatest(mark, (greatest(p_step, case when r.lost then 0 else r.step end) + 1) << 26);
    end if;
    r.ends := 0; r.lost := false; r.step := greatest(r.step, r.base >> 26); r.moved := now;
  end if;
  update SCHEMA.record set step = r.step, moved = r.moved, base = r.base, ends = r.ends, lost = r.lost, life = r.life;
  word := 'granted'; life := r.life;
end $$;

-- inspect reads a name and changes nothing.
create or replace function SCHEMA.inspect(p_name bytea, p_set bigint, p_max bigint, p_server text, p_life bigint, p_seen pg_lsn,
  out word text, out reason text, out counter bigint, out quarantine boolean, out server text,
  out owners bytea[], out tokens bigint[], out since bigint[], out rest bigint[], out labels bytea[], out is_shared boolean)
language plpgsql as $$
declare
  r SCHEMA.record; n SCHEMA.lock; now bigint;
begin
  select * into r from SCHEMA.record;
  if not SCHEMA.admits(r, p_set) then
    word := 'mismatch'; reason := to_hex(r.serves[1]);
    return;
  end if;
  select * into n from SCHEMA.lock where name = p_name;
  now := SCHEMA.clock();
  n := SCHEMA.settle_name(n, greatest(r.longest, p_max), now);
  word := 'granted'; server := r.server; is_shared := n.shared; counter := case when n.known then n.counter else 0 end;
  quarantine := r.one is null or r.ends > 0 or SCHEMA.fell_back(r, p_server, p_life, p_seen)
    or r.boot <> SCHEMA.boot() and (r.server <> SCHEMA.server() or current_setting('fsync') = 'off');
  select array_agg(o), array_agg(t), array_agg(s), array_agg(u - now), array_agg(l) into owners, tokens, since, rest, labels
    from unnest(n.owners, n.tokens, n.since, n.until, n.labels) as v(o, t, s, u, l);
end $$;

-- serve makes the store serve p_to instead of p_from, in any order. A record that
-- is missing begins its quarantine here, as with any request.
create or replace function SCHEMA.serve(p_from bigint[], p_to bigint[], p_max bigint, p_limit bigint,
  out word text, out serves bigint[]) language plpgsql as $$
begin
  perform SCHEMA.begin_call(p_limit);
  insert into SCHEMA.record default values on conflict do nothing;
  select r.serves into serves from SCHEMA.record r for update;
  word := 'granted';
  if serves @> p_to and serves <@ p_to then
    return;
  elsif not (serves @> p_from and serves <@ p_from) then
    word := 'mismatch';
    return;
  end if;
  serves := p_to;
  -- Of two sets the longer MaxTTL counts: a client of the other must not bring
  -- near the ends of votes.
  update SCHEMA.record r set serves = p_to, longest = case when cardinality(p_to) = 1 then p_max else greatest(r.longest, p_max) end;
  perform SCHEMA.settle(p_to[1], p_max, '', 0, '0/0');
end $$;
