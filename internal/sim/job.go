package sim

// What package quorumsim needs to run a program of its user's.

// Run carries a world that has not begun to its end.
func (w *World) Run() *Report {
	w.run()
	return w.report
}

// Watch gives every event to f as it happens, whether or not a trace is kept.
func (w *World) Watch(f func(Event)) { w.watch = f }

// Key returns the number of the key that programs call text. The first name
// takes the place of key 0, which every world has.
func (c *Client) Key(text string) int {
	w := c.w
	for i := range w.named {
		if w.keys[i].text == text {
			return i
		}
	}
	i := w.named
	w.named++
	if i == len(w.keys) {
		w.keys = append(w.keys, &name{ask: askOrder(i, w.cfg.Stores), tokens: map[int64]int{}})
		w.cfg.Keys++
	}
	w.keys[i].text = text
	return i
}

// Send carries a message of the program to something that is no store, and an
// answer back. arrives runs there whatever has become of the process by then;
// answered runs as with [Client.After], unless the process that sent has died.
func (c *Client) Send(arrives, answered func()) {
	w, life := c.w, c.life
	w.push(event{at: w.now + w.latency(), kind: hook, fn: func() {
		arrives()
		w.push(event{at: w.now + w.latency(), kind: call, c: c, life: life, fn: answered})
	}})
}
