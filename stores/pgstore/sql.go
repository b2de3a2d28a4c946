package pgstore

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"strings"
)

//go:embed sql/tables.sql
var tablesSQL string

//go:embed sql/record.sql
var recordSQL string

//go:embed sql/name.sql
var nameSQL string

//go:embed sql/queue.sql
var queueSQL string

//go:embed sql/ask.sql
var askSQL string

//go:embed sql/release.sql
var releaseSQL string

//go:embed sql/look.sql
var lookSQL string

// texts are the statements of one schema.
type texts struct {
	setup, version                    string
	versioned                         string // asks the database for its version
	ask, release                      string
	readStep, raise, inspect          string
	serves, serve, listen, ping, sync string
}

// write writes the statements of a schema. A schema's name needs no escaping.
func write(schema string) texts {
	channel := schema + ":wake"
	place := strings.NewReplacer("SCHEMA", `"`+schema+`"`, "CHANNEL", channel)
	setup := place.Replace(tablesSQL + recordSQL + nameSQL + queueSQL + askSQL + releaseSQL + lookSQL)
	sum := sha256.Sum256([]byte(setup))
	version := hex.EncodeToString(sum[:8])
	setup += place.Replace("create or replace function SCHEMA.version() returns text language sql immutable as $$ select '" +
		version + "'::text $$;\n")
	return texts{
		setup: setup, version: version,
		versioned: place.Replace(`select SCHEMA.version()`),
		ask: place.Replace(`select word, coalesce(token, 0), coalesce(ttl, 0), coalesce(is_shared, false), coalesce(readers, 0),
			coalesce(previous, 0), coalesce(rest, 0), coalesce(label, ''), coalesce(by_force, false), coalesce(clean, false),
			coalesce(reason, ''), coalesce(ticket, 0), coalesce(rank, 0), after, coalesce(server, ''), coalesce(life, 0), coalesce(seen::text, '')
			from SCHEMA.ask($1::text, $2::bytea, $3::bytea, $4::bigint, $5::boolean, $6::bigint, $7::bigint, $8::bytea, $9::text,
			$10::bigint, $11::bigint, $12::bigint, $13::bytea, $14::bigint, $15::bigint, $16::bigint, $17::text, $18::bigint,
			$19::text::pg_lsn, $20::boolean)`),
		release: place.Replace(`select held, clean from SCHEMA.release($1::bytea, $2::bytea, $3::bigint, $4::bigint, $5::bigint)`),
		readStep: place.Replace(`select word, coalesce(reason, ''), coalesce(step, 0), coalesce(base, 0), coalesce(ends, 0),
			coalesce(over, false), coalesce(rest, 0), coalesce(server, ''), coalesce(life, 0), coalesce(seen::text, '')
			from SCHEMA.read_step($1::bigint, $2::bigint, $3::bigint, $4::text, $5::bigint, $6::text::pg_lsn)`),
		raise: place.Replace(`select word, coalesce(reason, ''), coalesce(rest, 0), coalesce(server, ''), coalesce(life, 0),
			coalesce(seen::text, '')
			from SCHEMA.raise_step($1::text, $2::bigint, $3::bigint, $4::bigint, $5::text, $6::bigint, $7::bigint, $8::bigint,
			$9::text, $10::bigint, $11::text::pg_lsn)`),
		inspect: place.Replace(`select i.word, coalesce(i.reason, ''), coalesce(i.counter, 0), coalesce(i.quarantine, false),
			coalesce(i.server, ''), coalesce(i.is_shared, false), (select json_agg(json_build_object('owner', encode(o, 'hex'),
			'token', t, 'since', s, 'left', u, 'label', encode(l, 'base64'))) from unnest(i.owners, i.tokens, i.since, i.rest,
			i.labels) as v(o, t, s, u, l))::text
			from SCHEMA.inspect($1::bytea, $2::bigint, $3::bigint, $4::text, $5::bigint, $6::text::pg_lsn) i`),
		serves: place.Replace(`select coalesce((select array_to_string(serves, ',') from SCHEMA.record), '')`),
		serve: place.Replace(`select word, array_to_string(serves, ',')
			from SCHEMA.serve(string_to_array($1::text, ',')::bigint[],
			string_to_array($2::text, ',')::bigint[], $3::bigint, $4::bigint)`),
		listen: `listen "` + channel + `"`,
		ping:   `select pg_notify('` + channel + `', $1::text)::text`,
		sync:   `select current_setting('fsync') || ' ' || current_setting('full_page_writes')`,
	}
}
