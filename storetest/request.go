package storetest

import (
	"crypto/rand"
	"time"

	"github.com/quorumlock/quorum"
)

// owner draws a new owner at attempt 1.
func owner() quorum.Owner {
	o := quorum.Owner{Attempt: 1}
	_, _ = rand.Read(o.ID[:])
	return o
}

// at returns o at attempt n.
func at(o quorum.Owner, n uint32) quorum.Owner {
	o.Attempt = n
	return o
}

// A mod changes one field of a request.
type mod func(*quorum.Request)

func floor(n int64) mod            { return func(r *quorum.Request) { r.Floor = n } }
func lasting(d time.Duration) mod  { return func(r *quorum.Request) { r.TTL = d } }
func kind(k quorum.Kind) mod       { return func(r *quorum.Request) { r.Kind = k } }
func key(k string) mod             { return func(r *quorum.Request) { r.Key = k } }
func label(l string) mod           { return func(r *quorum.Request) { r.Label = l } }
func set(f quorum.Fingerprint) mod { return func(r *quorum.Request) { r.Set = f } }
func shared(r *quorum.Request)     { r.Mode = quorum.ModeShared }
func entomb(r *quorum.Request)     { r.Entomb = true }
func repairing(token int64) mod    { return all(kind(quorum.KindRepair), floor(token)) }
func converting(m quorum.Mode) mod { return all(kind(quorum.KindConvert), mode(m)) }
func mode(m quorum.Mode) mod       { return func(r *quorum.Request) { r.Mode = m } }
func all(mods ...mod) mod {
	return func(r *quorum.Request) {
		for _, m := range mods {
			m(r)
		}
	}
}
