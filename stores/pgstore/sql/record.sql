-- clock reads the server's clock. The body is inlined where it is called.
create or replace function SCHEMA.clock() returns bigint language sql volatile as $$
  select (extract(epoch from pg_catalog.clock_timestamp()) * 1000000)::bigint
$$;

-- begin_call sets what one call needs, until the end of its transaction: how
-- long it waits for a row, and that what it answers is on the disk.
create or replace function SCHEMA.begin_call(p_limit bigint) returns void language plpgsql as $$
begin
  if pg_is_in_recovery() then
    raise exception using errcode = '25006', message = 'the server is a standby';
  end if;
  perform set_config('lock_timeout', p_limit::text, true);
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;
end $$;

-- boot is when the server's process began; it alone is asked at each call.
create or replace function SCHEMA.boot() returns bigint language sql stable as $$
  select (extract(epoch from pg_catalog.pg_postmaster_start_time()) * 1000000)::bigint
$$;

-- server names this server and its timeline, which changes when a standby is
-- promoted and when an older state is restored by the archive.
create or replace function SCHEMA.server() returns text language sql volatile as $$
  select system_identifier || '/' || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8) from pg_control_system()
$$;

-- fell_back says that a client saw a later state of this server than this one:
-- a backup was started in its place.
create or replace function SCHEMA.fell_back(r SCHEMA.record, p_server text, p_life bigint, p_seen pg_lsn)
returns boolean language sql volatile as $$
  select r.server = p_server and (r.life < p_life or r.life = p_life and pg_current_wal_flush_lsn() < p_seen)
$$;

-- stale says that the record has to be brought up to now before anything else:
-- it is missing, a stranger's, of an earlier life, or its step is due.
create or replace function SCHEMA.stale(r SCHEMA.record, p_now bigint, p_max bigint, p_server text, p_life bigint, p_seen pg_lsn)
returns boolean language plpgsql stable as $$
begin
  return r.one is null or r.version <> 1 or r.serves = '{}' or r.boot <> SCHEMA.boot()
    or p_now < r.moved or p_now - r.moved >= 600000000
    or p_now - r.moved >= 300000000 and p_now / 300000000 > r.step
    or p_max > r.longest or r.ends > p_now + r.longest
    or SCHEMA.fell_back(r, p_server, p_life, p_seen);
end $$;

-- admits says that clients of a set may speak with the store.
create or replace function SCHEMA.admits(r SCHEMA.record, p_set bigint) returns boolean language sql immutable as $$
  select r.one is null or r.serves = '{}' or p_set = any (r.serves)
$$;

-- settle locks the record, brings it up to now and returns it. Who may have to
-- change the record locks it so from the start: a lock that is first shared
-- and then not would meet another one doing the same.
create or replace function SCHEMA.settle(p_set bigint, p_max bigint, p_server text, p_life bigint, p_seen pg_lsn)
returns SCHEMA.record language plpgsql as $$
declare
  r SCHEMA.record; old SCHEMA.record; now bigint; here text;
begin
  insert into SCHEMA.record default values on conflict do nothing;
  select * into old from SCHEMA.record for update;
  r := old;
  if r.version <> 1 then
    raise exception using errcode = 'QRFMT', message = format('the tables in schema %s have format %s', 'SCHEMA', r.version);
  elsif not SCHEMA.admits(r, p_set) then
    return r;
  end if;
  now := SCHEMA.clock();
  if r.serves = '{}' then
    r.serves := array[p_set];
  end if;
  r.longest := greatest(r.longest, p_max);
  if now < r.moved or now - r.moved >= 600000000 or now - r.moved >= 300000000 and now / 300000000 > r.step then
    r.step := greatest(r.step + 1, now / 300000000);
    r.moved := now;
  end if;
  if r.boot <> SCHEMA.boot() then
    here := SCHEMA.server();
    -- The same server after a restart has all that it acknowledged, if it syncs.
    if here <> r.server or current_setting('fsync') = 'off' then
      r.ends := now + r.longest;
      r.life := r.life + 1;
    end if;
    r.server := here;
    r.boot := SCHEMA.boot();
  end if;
  if SCHEMA.fell_back(r, p_server, p_life, p_seen) then
    r.life := greatest(r.life, p_life) + 1;
    r.ends := now + r.longest;
  end if;
  if r.ends > now + r.longest then -- the clock went back
    r.ends := now + r.longest;
  end if;
  if r is distinct from old then
    update SCHEMA.record set serves = r.serves, server = r.server, boot = r.boot, life = r.life,
      step = r.step, moved = r.moved, base = r.base, ends = r.ends, lost = r.lost, longest = r.longest;
  end if;
  return r;
end $$;
