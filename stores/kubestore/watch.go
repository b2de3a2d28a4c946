package kubestore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	coordination "k8s.io/api/coordination/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/quorumlock/quorum"
)

// watchTime is how long the server keeps one watch, and watchLeast how long one
// lasts if nothing is wrong.
const (
	watchTime  = 5 * time.Minute
	watchLeast = time.Second
)

// Watch implements [quorum.Watcher] by a watch of the name's Lease. It tells of
// votes that somebody removed: a release, a take-over, or a vote that was over
// and that somebody else's write left out. That a vote is over is told by
// nobody; whoever waits looks again when the time left is over.
func (s *Store) Watch(ctx context.Context, r quorum.Request, tell func(quorum.Wake)) error {
	w := watching{Store: s, selector: "metadata.name=" + leaseName(s.prefix, r.Key), tell: tell}
	for {
		began := s.clock.Now()
		err := w.once(ctx)
		if kerrors.IsResourceExpired(err) || kerrors.IsGone(err) {
			err = nil // it forgot where the watch was: anew
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil && s.clock.Now().Sub(began) < watchLeast:
			err = errors.New("the API server ended the watch at once")
		}
		if err != nil {
			err, _ = explain(err)
			return fmt.Errorf("kube store %s: watch %q: %w", s.name, r.Key, err)
		}
	}
}

type watching struct {
	*Store
	selector string
	tell     func(quorum.Wake)
	started  bool
	owners   map[string]bool // of the votes that were there last
}

// once lists the Lease and watches it from there, until the server ends that.
func (w *watching) once(ctx context.Context) error {
	list, err := w.list(ctx, "fieldSelector", w.selector, "")
	if err != nil {
		return err
	}
	request := w.ask(w.client.Get()).Param("fieldSelector", w.selector).Param("watch", "true").
		Param("resourceVersion", list.ResourceVersion).
		Param("timeoutSeconds", strconv.Itoa(int(watchTime/time.Second)))
	stream, err := request.Watch(ctx)
	if err != nil {
		return err
	}
	defer stream.Stop()
	var lease *coordination.Lease
	if len(list.Items) > 0 {
		lease = &list.Items[0]
	}
	w.look(lease)
	if !w.started {
		w.started = true
		w.tell(quorum.Wake{Kind: quorum.WakeStarted})
	}
	for event := range stream.ResultChan() {
		lease, ok := event.Object.(*coordination.Lease)
		switch {
		case event.Type == watch.Error:
			return kerrors.FromObject(event.Object)
		case !ok:
			continue
		case event.Type == watch.Deleted:
			lease = nil
		}
		w.look(lease)
	}
	return nil
}

// look tells if a vote is gone.
func (w *watching) look(lease *coordination.Lease) {
	var votes []voteValue
	if lease != nil {
		_ = (&object{lease: lease}).value(votesKey, &votes) // what is damaged is no vote, and is told by the next call
	}
	now := map[string]bool{}
	for _, v := range votes {
		now[v.Owner] = true
	}
	for owner := range w.owners {
		if !now[owner] {
			w.tell(quorum.Wake{Kind: quorum.WakeChanged})
			break
		}
	}
	w.owners = now
}
