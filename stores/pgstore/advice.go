package pgstore

// What is known of whether the server keeps what it acknowledged.
const (
	syncUnknown = iota
	syncGood
	syncOff
	syncTorn
)

// Advice implements [quorum.Adviser]. What it says of the server is read with
// its record, see [Store.ReadStep].
func (s *Store) Advice() []string {
	var all []string
	switch s.syncs.Load() {
	case syncOff:
		all = append(all, "fsync is off: the server counts as one that forgot at each restart; set it to on")
	case syncTorn:
		all = append(all, "full_page_writes is off: a crash of the machine can damage tables; set it to on")
	}
	if s.limits.Doubles {
		all = append(all, "the driver of the *sql.DB is not known and may send a request twice, so that releases leave "+
			"tombstones; use a pgx pool or pgx's stdlib driver")
	}
	if !s.limits.Watches {
		all = append(all, "the driver of the *sql.DB cannot listen, so that waiters poll; use a pgx pool, or ListenOn")
	}
	return all
}
