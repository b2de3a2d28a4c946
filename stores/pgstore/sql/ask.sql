-- ask is Acquire, by its kind, and Extend. word says what came of it:
--   granted | held | late | ready | not held | quarantined | mismatch | invalid
--   again: nothing was done; p_lock has to be set, so that the record is locked
-- p_wait says what a refusal leaves: none | watch | take | queue.
create or replace function SCHEMA.ask(
  p_kind text, p_name bytea, p_owner bytea, p_attempt bigint, p_shared boolean, p_ttl bigint, p_floor bigint, p_label bytea,
  p_wait text, p_ticket bigint, p_keep bigint, p_claim bigint, p_after bytea,
  p_set bigint, p_max bigint, p_limit bigint, p_server text, p_life bigint, p_seen pg_lsn, p_lock boolean,
  out word text, out token bigint, out ttl bigint, out is_shared boolean, out readers int, out previous int,
  out rest bigint, out label bytea, out by_force boolean, out clean boolean, out reason text, out ticket bigint,
  out rank int, out after bytea,
  out server text, out life bigint, out seen pg_lsn) language plpgsql as $$
declare
  r SCHEMA.record; n SCHEMA.lock; old SCHEMA.lock; now bigint; place int;
  waits boolean := p_kind = 'new' and p_wait in ('take', 'queue');
  i int; mine bigint; others int; given bigint; writer boolean; cnt bigint; made boolean := false; late bigint;
  -- a snapshot decides first: a refusal needs no lock, transaction id or fsync
  dry boolean := p_kind = 'new' and not waits and not p_lock;
begin
  perform SCHEMA.begin_call(p_limit);
  if p_lock then
    r := SCHEMA.settle(p_set, p_max, p_server, p_life, p_seen);
    after := SCHEMA.clean(p_after, 500, r.step, SCHEMA.clock());
  else
    select * into r from SCHEMA.record;
  end if;
  clean := true;
  if not SCHEMA.admits(r, p_set) then
    word := 'mismatch'; reason := to_hex(r.serves[1]);
    select not coalesce(p_owner = any (l.owners), false) and SCHEMA.place(l.queue, p_owner) is null into clean
      from SCHEMA.lock l where l.name = p_name;
    clean := coalesce(clean, true);
    return;
  end if;
  loop
    if dry then
      select * into n from SCHEMA.lock where name = p_name;
      if n.queue is not null then -- whose turn may be over
        dry := false;
        continue;
      end if;
    else
      select * into n from SCHEMA.lock where name = p_name for no key update;
      if found then
        if not p_lock then -- what was read before the lock may be long over
          select * into r from SCHEMA.record;
        end if;
      else
        -- The counter of a name without a row lay below the step, and the step
        -- cannot move while the record is locked, here for share.
        if not p_lock then
          select * into r from SCHEMA.record for share;
        end if;
        insert into SCHEMA.lock (name) values (p_name) on conflict do nothing;
        made := found;
        select * into n from SCHEMA.lock where name = p_name for no key update;
      end if;
    end if;
    now := SCHEMA.clock(); -- the one reading that decides, after the lock
    if not p_lock and SCHEMA.stale(r, now, p_max, p_server, p_life, p_seen) then
      word := 'again';
      return;
    end if;
    server := r.server; life := r.life; seen := pg_current_wal_flush_lsn();
    old := n;
    n := SCHEMA.settle_name(n, r.longest, now);
    if n.known and n.owners is null and n.queue is null and now >= n.keep and n.counter < r.step << 26 then
      n.known := false; n.writer := false; n.counter := 0; n.last := 0;
    end if;
    i := array_position(n.owners, p_owner);
    mine := n.attempts[i];
    others := coalesce(cardinality(n.owners), 0) - (i is not null)::int;
    cnt := case when n.known then n.counter else r.step << 26 end;
    writer := not p_shared;
    given := null;
    word := null;
    late := n.tomb_attempts[array_position(n.tomb_owners, p_owner)];
    place := SCHEMA.place(n.queue, p_owner);
    ticket := now;

    if p_floor > least(greatest((now / 300000000) << 26, r.base) + (1::bigint << 40), (1::bigint << 53) - 1) then
      word := 'invalid'; reason := 'the floor of this request is out of reach';
      return;
    elsif p_kind = 'extend' then
      if mine = p_attempt then
        given := greatest(n.tokens[i], p_floor); writer := not n.shared;
      else
        word := 'not held';
      end if;
    elsif r.ends > 0 and (p_kind in ('new', 'force') or p_kind = 'convert' and not p_shared) then
      word := 'quarantined'; rest := greatest(r.ends - now, 0);
    elsif mine > p_attempt or late >= p_attempt or n.queue[place].attempt > p_attempt then
      word := 'late';
    elsif p_kind = 'repair' then
      if mine = p_attempt then
        writer := not n.shared;
      end if;
      if others > 0 and (writer or not n.shared) then
        word := 'held';
      elsif n.known and n.counter > p_floor then
        word := 'late'; -- a later owner was here
      else
        given := p_floor;
      end if;
    elsif p_kind = 'convert' and mine is null then
      word := 'not held';
    elsif mine = p_attempt then -- the request came twice
      given := n.tokens[i]; writer := not n.shared;
    elsif p_kind = 'convert' and p_shared then
      given := greatest(n.tokens[i], p_floor);
    elsif not waits and p_kind <> 'force' and others > 0 and (writer or not n.shared)
      or not waits and p_kind = 'new' and cardinality(n.queue) > (place is not null)::int then
      word := 'held'; -- or others stand in line
    else
      given := case when writer or n.known and n.writer then greatest(cnt + 1, p_floor, r.base + 1)
        else greatest(cnt, p_floor, r.base, 1) end;
    end if;
    if given >= 1::bigint << 53 then
      word := 'invalid'; reason := 'no token is left below 2^53 for this name';
      return;
    end if;
    if not dry then
      exit;
    elsif given is null and (word <> 'held' or p_wait <> 'watch' or n.watched) then
      exit;
    end if;
    dry := false;
  end loop;

  if waits and given is not null and mine is distinct from p_attempt then
    if mine is not null then -- who stands in line holds nothing back
      n := SCHEMA.tell(SCHEMA.drop_vote(n, i));
      n.last := 1; i := null; mine := null;
    end if;
    ticket := case when p_ticket > 0 then p_ticket else coalesce(n.queue[place].ticket, now) end;
    n := SCHEMA.enqueue(n, (p_owner, p_attempt, p_shared, ticket, now + p_keep, p_claim, 0)::SCHEMA.entry);
    n := SCHEMA.turns(n, r.ends = 0, cnt, now, p_owner);
    place := SCHEMA.place(n.queue, p_owner);
    rank := place - 1;
    if n.queue[place].turn = 0 then
      given := null; word := 'held';
    elsif p_wait = 'queue' then
      given := null; word := 'ready';
    end if;
  elsif n.queue is not null and given is null then
    n := SCHEMA.turns(n, r.ends = 0, cnt, now, null);
    place := SCHEMA.place(n.queue, p_owner);
  end if;

  if given is null then
    i := array_position(n.forced, p_owner);
    by_force := i is not null;
    clean := mine is null and place is null;
    token := case when n.known then n.counter when word = 'ready' then cnt else 0 end;
    readers := case when n.shared then coalesce(cardinality(n.owners), 0) else 0 end;
    if p_kind <> 'new' or word not in ('held', 'ready') then
      ticket := null;
    end if;
    if word = 'ready' then
      rest := p_claim;
    elsif word = 'held' and (writer or not n.shared) and others > 0 then
      select u - now, l into rest, label from unnest(n.owners, n.until, n.labels) as v(o, u, l)
        where o <> p_owner order by u desc limit 1;
    elsif word = 'held' and n.queue[1].turn > 0 then
      rest := greatest(n.queue[1].turn - now, 0);
    end if;
    if word = 'held' and p_wait = 'watch' and not n.watched then
      n.watched := true;
      perform SCHEMA.put_name(n);
    elsif n.queue is distinct from old.queue then
      perform SCHEMA.put_name(n);
    end if;
    if by_force then
      label := n.forced_labels[i];
    end if;
    return;
  end if;

  -- The counter, and the step that must cover it.
  if not n.known then
    n.known := true; n.writer := false; n.counter := cnt;
  end if;
  if given > n.counter then
    -- a demoted writer's number stays a writer's
    n.writer := case when p_kind = 'convert' and p_shared and mine < p_attempt then n.writer else writer end;
    n.counter := given;
  elsif given = n.counter and writer and not (p_kind = 'convert' and p_shared and mine < p_attempt) then
    n.writer := true;
  end if;
  if n.counter >= (r.step + 1) << 26 then
    if not p_lock then
      word := 'again';
      return;
    end if;
    update SCHEMA.record set step = greatest(r.step + 1, now / 300000000, n.counter >> 26), moved = now;
  end if;

  if p_kind = 'force' and others > 0 then
    n := SCHEMA.evict(n, p_owner, p_label, now + r.longest);
    i := array_position(n.owners, p_owner);
  end if;
  if p_kind = 'convert' and p_shared and not n.shared then
    n := SCHEMA.tell(n); -- readers may come in
  end if;
  n := SCHEMA.vote(n, i, p_owner, p_attempt, given, writer, now, p_ttl, p_label, p_kind = 'extend' or coalesce(mine = p_attempt, false) and p_kind <> 'repair');
  if n.queue is not null then -- who has a vote waits for none
    n.queue := SCHEMA.leave(n.queue, SCHEMA.place(n.queue, p_owner));
    n := SCHEMA.turns(n, r.ends = 0, n.counter, now, null);
  end if;
  perform SCHEMA.put_name(n);
  if made and not p_lock then
    after := SCHEMA.clean(p_after, 4, r.step, now);
  end if;
  i := array_position(n.owners, p_owner);
  word := 'granted'; token := given; ttl := n.until[i] - now; is_shared := n.shared; previous := n.last;
  readers := case when n.shared then cardinality(n.owners) else 0 end;
end $$;

-- vote puts the vote of p_owner, which is the i-th if it has one, or only makes
-- it last longer. It ends no sooner than that of an earlier attempt did, and
-- began with it unless the mode changes.
create or replace function SCHEMA.vote(n SCHEMA.lock, i int, p_owner bytea, p_attempt bigint, p_token bigint, p_writer boolean,
  p_now bigint, p_ttl bigint, p_label bytea, p_same boolean) returns SCHEMA.lock language plpgsql immutable as $$
declare
  ends bigint := p_now + p_ttl; began bigint := p_now;
begin
  if i is null then
    n.owners := n.owners || p_owner; n.attempts := n.attempts || p_attempt; n.tokens := n.tokens || p_token;
    n.since := n.since || began; n.until := n.until || ends; n.labels := n.labels || p_label;
  else
    ends := greatest(ends, n.until[i]);
    n.tokens[i] := p_token; n.until[i] := ends;
    if not p_same then
      if n.shared = p_writer then
        n.since[i] := began;
      end if;
      n.attempts[i] := p_attempt; n.labels[i] := p_label;
    end if;
  end if;
  n.shared := not p_writer;
  n.keep := greatest(n.keep, ends + 600000000);
  return SCHEMA.ending(n, ends);
end $$;

-- evict removes every vote but p_owner's and remembers by whom until p_until.
create or replace function SCHEMA.evict(n SCHEMA.lock, p_owner bytea, p_label bytea, p_until bigint)
returns SCHEMA.lock language plpgsql as $$
declare
  gone bytea; i int;
begin
  foreach gone in array n.owners loop
    continue when gone = p_owner;
    i := array_position(n.forced, gone);
    if i is null then
      n.forced := n.forced || gone; n.forced_labels := n.forced_labels || p_label; n.forced_until := n.forced_until || p_until;
    else
      n.forced_labels[i] := p_label; n.forced_until[i] := p_until;
    end if;
  end loop;
  select array_agg(o), array_agg(a), array_agg(t), array_agg(s), array_agg(u), array_agg(l)
    into n.owners, n.attempts, n.tokens, n.since, n.until, n.labels
    from unnest(n.owners, n.attempts, n.tokens, n.since, n.until, n.labels) as v(o, a, t, s, u, l) where o = p_owner;
  n.last := 0;
  n.watched := true; -- whoever held is to be told as well
  return SCHEMA.ending(SCHEMA.tell(n), p_until);
end $$;
