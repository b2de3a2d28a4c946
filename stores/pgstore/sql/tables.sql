-- What Setup makes in the schema SCHEMA. Times are microseconds since 1970 on
-- this server's clock; names and labels are bytes, so that no encoding of a
-- database changes them.
create schema if not exists SCHEMA;

-- What the server says of itself: one row, or none when everything was lost.
create table if not exists SCHEMA.record (
  one     boolean primary key default true check (one),
  version integer  not null default 1, -- of the format of both tables
  serves  bigint[] not null default '{}', -- fingerprints of the sets, two while a set changes
  server  text     not null default '', -- system identifier and timeline that wrote here last
  boot    bigint   not null default 0,  -- when that server's process began
  life    bigint   not null default 0,  -- grows with each time that it was seen to have forgotten
  step    bigint   not null default 0,  -- a name without a counter starts from step * 2^26
  moved   bigint   not null default 0,  -- when the step moved
  base    bigint   not null default 0,  -- no exclusive token at or below it is given
  ends    bigint   not null default 0,  -- of the quarantine, or 0
  lost    boolean  not null default true, -- step is the clock's and no memory
  longest bigint   not null default 0   -- MaxTTL, the longest of the sets that are served
);

-- A waiter in the queue of a name.
do $$
begin
  create type SCHEMA.entry as (
    owner bytea, attempt bigint, shared boolean,
    ticket bigint, -- its place, the same in every store
    until  bigint, -- without another request it is over then
    claim  bigint, -- how long a turn of it lasts
    turn   bigint  -- the end of its turn, or 0
  );
exception when duplicate_object then null;
end $$;

-- A name: its counter, its votes, and what was released or forced. The parallel
-- arrays are null when empty. Half of a page stays free, so that an update
-- finds room beside the old version and touches no index.
create table if not exists SCHEMA.lock (
  name         bytea primary key,
  known        boolean  not null default false, -- there is a counter
  counter      bigint   not null default 0,     -- at least every token given
  writer       boolean  not null default false, -- last given to a writer: the next reader steps past it
  last         smallint not null default 0,     -- how the last holder ended: 0 unknown, 1 released, 2 expired
  keep         bigint   not null default 0,     -- the counter may be dropped then
  first_end    bigint   not null default 0,     -- nothing in the arrays ends before
  last_end     bigint   not null default 0,     -- nor after
  watched      boolean  not null default false, -- somebody waits to be told
  shared       boolean  not null default false, -- the votes are readers'
  owners       bytea[], attempts bigint[], tokens bigint[], since bigint[], until bigint[], labels bytea[],
  tomb_owners  bytea[], tomb_attempts bigint[], tomb_until bigint[],
  forced       bytea[], forced_labels bytea[], forced_until bigint[],
  queue        SCHEMA.entry[]
) with (fillfactor = 50);
alter table SCHEMA.lock add column if not exists queue SCHEMA.entry[]; -- which tables made earlier lack

-- Deleting a row by hand, as people do to a lock that is stuck, frees the name
-- and keeps its counter and its queue; whoever watches is told, and whoever is
-- first in line. The cleaner's rows pass.
create or replace function SCHEMA.keep_counter() returns trigger language plpgsql as $$
begin
  if old.owners is not null then
    perform pg_notify('CHANNEL', encode(old.name, 'hex'));
  end if;
  if old.known and old.counter >= (select r.step << 26 from SCHEMA.record r) then
    old.owners := null; old.attempts := null; old.tokens := null; old.since := null; old.until := null; old.labels := null;
    old.watched := false; old.last := 0;
    if old.queue is not null then
      old := SCHEMA.turns(old, true, old.counter, SCHEMA.clock(), null);
    end if;
    perform SCHEMA.put_name(old);
    return null;
  end if;
  return old;
end $$;
create or replace trigger keep_counter before delete on SCHEMA.lock for each row execute function SCHEMA.keep_counter();

-- TRUNCATE takes all counters at once: the server has then forgotten.
create or replace function SCHEMA.forget_all() returns trigger language plpgsql as $$
begin
  delete from SCHEMA.record;
  return null;
end $$;
create or replace trigger forget_all before truncate on SCHEMA.lock for each statement execute function SCHEMA.forget_all();
