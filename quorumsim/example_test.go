package quorumsim_test

import (
	"fmt"
	"log"
	"time"

	"github.com/quorumlock/quorum/quorumsim"
)

// A job holds a lock and writes. In the middle of it the first process stands
// still for longer than its TTL, somebody else takes over, and the fence of the
// archive refuses what the first one writes when it wakes.
func Example() {
	job := func(j *quorumsim.Job) {
		j.Sleep(time.Duration(j.Client()) * time.Second) // one after the other
		lease, err := j.Acquire("report", quorumsim.Ask{Wait: 30 * time.Second})
		if err != nil {
			j.Log("%v", err)
			return
		}
		for part := range 3 {
			if lease.Err() != nil {
				break // held no more: somebody else is at it
			}
			j.Sleep(3 * time.Second) // the work
			if err := j.Write("archive", lease.Token()); err != nil {
				j.Log("part %d is not written", part)
			}
		}
		_ = lease.Release()
	}
	report, err := quorumsim.Run(quorumsim.Config{
		Job: job, Clients: 2, Stores: 3, TTL: 10 * time.Second,
		Faults: []quorumsim.Fault{{Kind: quorumsim.Pause, From: 4 * time.Second, To: 22 * time.Second, Clients: []int{0}}},
	}, 3)
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range report.History { // fmt.Print(report.History) shows times and tokens too
		switch e.What {
		case quorumsim.Acquires, quorumsim.Loses:
			fmt.Printf("client %d %s %s\n", e.Client, e.What, e.Key)
		case quorumsim.Takes, quorumsim.Refuses:
			fmt.Printf("%s %s a write of client %d\n", e.Resource, e.What, e.Client)
		case quorumsim.Begins, quorumsim.Ends, quorumsim.Logs:
			fmt.Printf("%v %s: %s\n", e.At.Round(time.Second), e.What, e.Text)
		}
		if e.What == quorumsim.Calms {
			break
		}
	}
	fmt.Println(report.Refused, "refused,", len(report.Violations), "violations")
	// Output:
	// client 0 acquires report
	// archive takes a write of client 0
	// 4s begins: pause at 4s for 18s, clients [0]
	// client 1 acquires report
	// archive takes a write of client 1
	// archive takes a write of client 1
	// client 0 loses report
	// 22s ends: pause at 4s for 18s, clients [0]
	// archive refuses a write of client 0
	// 22s logs: part 1 is not written
	// archive takes a write of client 1
	// 1 refused, 0 violations
}

// A script says the same for a few events. The resource db does not look at
// tokens, and client 0 does not look at its lease.
func ExampleRun_script() {
	report, err := quorumsim.Run(quorumsim.Config{
		Clients: 2, TTL: 10 * time.Second, NoFence: []string{"db"},
		Faults: []quorumsim.Fault{{Kind: quorumsim.Partition, From: 2 * time.Second, Clients: []int{0}}},
		Script: `
			0s   0  acquire report
			1s   0  write   report db
			3s   1  acquire report          # gets it when client 0 is cut off for long enough
			20s  1  write   report db
			21s  0  write   report db anyway
		`,
	}, 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Acquired, "acquired,", report.Lost, "lost")
	for _, v := range report.Violations {
		fmt.Println(v.Check, "write at", v.At)
	}
	// Output:
	// 2 acquired, 1 lost
	// stale write at 21.001s
}

// The seed draws what goes wrong. A seed that fails is a bug report: run again,
// it fails in the same way.
func ExampleConfig_swarm() {
	job := func(j *quorumsim.Job) {
		for {
			lease, err := j.Acquire("counter", quorumsim.Ask{})
			if err != nil {
				continue
			}
			if lease.Sleep(time.Duration(j.Intn(5000))*time.Millisecond) == nil {
				_ = j.Write("db", lease.Token())
			}
			_ = lease.Release()
		}
	}
	acquired := 0
	for seed := range uint64(50) {
		report, err := quorumsim.Run(quorumsim.Config{Job: job, TTL: 5 * time.Second, Swarm: true}, seed)
		if err != nil {
			log.Fatal(err)
		}
		for _, v := range report.Violations {
			fmt.Printf("seed %d: %v\n", seed, v)
		}
		acquired += report.Acquired
	}
	fmt.Println("more than 200 acquired:", acquired > 200)
	// Output: more than 200 acquired: true
}

// A history from elsewhere, such as the logs of two servers with one clock.
func ExampleOverlap() {
	at := func(s int) time.Duration { return time.Duration(s) * time.Second }
	history := quorumsim.History{
		{At: at(0), What: quorumsim.Asks, Client: 0, Key: "report", Lease: 1},
		{At: at(0), What: quorumsim.Acquires, Client: 0, Key: "report", Lease: 1, Token: 7, Until: at(10)},
		{At: at(6), What: quorumsim.Renews, Client: 0, Key: "report", Lease: 1, Token: 7, Until: at(16)},
		{At: at(8), What: quorumsim.Asks, Client: 1, Key: "report", Lease: 2},
		{At: at(12), What: quorumsim.Acquires, Client: 1, Key: "report", Lease: 2, Token: 7, Until: at(22)},
		{At: at(13), What: quorumsim.Loses, Client: 0, Key: "report", Lease: 1, Token: 7},
	}
	for _, v := range quorumsim.Overlap(history) {
		fmt.Println(v)
	}
	// Output:
	// 12s unique: leases 1 and 2 have the token 7
	// 12s order: lease 2 of client 1 has token 7; 7 was held before it was asked for
	// 12s exclusion: lease 1 of client 0 and lease 2 of client 1 both hold report, until 16s and 22s
}
