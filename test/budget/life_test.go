package budget

import "testing"

// lifeOfOne is what the life of a thing costs: created, Ready, one field updated, deleted.
// The writes are the finalizer with the record, the status twice, and the finalizer's end. The
// looks are one before and one after each of the three changes.
func lifeOfOne() sum { return sum{Writes: 4, Reads: 0, Changes: 3, Looks: 6} }

func (b *bench) streamLife(t *testing.T) {
	w := b.newWorld(t)
	from := w.mark()
	s := w.stream("orders")
	w.create(s)
	ready(w, s)
	w.merge(s, `{"spec":{"maxMsgs":1000}}`)
	ready(w, s)
	w.delete(s)
	w.operator.Stop() // what it was about to do is done then
	all := w.cost(from, w.mark())
	all.of("streams", "orders").is(t, "the life of a Stream", lifeOfOne())
	want := lifeOfOne()
	want.Reads++ // once in a process: which cluster this is
	all.is(t, "all that the operator did", want)
}

// consumerLife is that of a Consumer whose Stream is Ready already.
func (b *bench) consumerLife(t *testing.T) {
	w := b.newWorld(t)
	s, c := w.stream("orders"), w.consumer("billing", "orders")
	w.create(s)
	ready(w, s)
	from := w.mark()
	w.create(c)
	ready(w, c)
	w.merge(c, `{"spec":{"maxDeliver":7}}`)
	ready(w, c)
	w.delete(c)
	w.delete(s)
	w.operator.Stop()
	w.cost(from, w.mark()).of("consumers", "billing").is(t, "the life of a Consumer", lifeOfOne())
}

// waitingConsumerLife is that of a Consumer which is there before its Stream. It says
// meanwhile what it waits for: that the Stream does not exist, and then that it is not Ready.
func (b *bench) waitingConsumerLife(t *testing.T) {
	w := b.newWorld(t)
	s, c := w.stream("orders"), w.consumer("billing", "orders")
	from := w.mark()
	w.create(c)
	w.waits(c)
	w.create(s)
	ready(w, s)
	ready(w, c)
	w.merge(c, `{"spec":{"maxDeliver":7}}`)
	ready(w, c)
	w.delete(c)
	w.delete(s)
	w.operator.Stop()
	want := lifeOfOne()
	want.Writes += 2
	w.cost(from, w.mark()).of("consumers", "billing").atMost(t, "the life of a Consumer that has to wait", want)
}

// updateBelow: while a Stream is being changed it is not Ready, which its Consumer says, once
// when that begins and once when it is over, if it comes to see both.
func (b *bench) updateBelow(t *testing.T) {
	w := b.newWorld(t)
	s, c := w.stream("orders"), w.consumer("billing", "orders")
	w.create(s, c)
	ready(w, s)
	ready(w, c)
	w.listen(settling)
	from := w.mark()
	w.merge(s, `{"spec":{"maxMsgs":1000}}`)
	ready(w, s)
	w.listen(settling)
	to := w.mark()
	w.delete(c)
	w.delete(s)
	w.operator.Stop()
	w.cost(from, to).of("consumers", "billing").atMost(t, "a Consumer whose Stream changes", sum{Writes: 2, Looks: 2})
}
