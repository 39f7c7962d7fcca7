package natsserver_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/trimtab-dev/trimtab/internal/natsserver"
)

func TestCallsAreWhatTheServerReceived(t *testing.T) {
	s := start(t, natsserver.Options{})
	js := connect(t, s, "someone")

	cfg := jetstream.StreamConfig{Name: "orders", Subjects: []string{"orders.>"}}
	must(t)(js.CreateStream(t.Context(), cfg))
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "copy", Subjects: []string{"orders.new"}}); err == nil {
		t.Fatal("a stream with overlapping subjects was accepted")
	}
	must(t)(js.CreateConsumer(t.Context(), "orders", jetstream.ConsumerConfig{Durable: "billing", FilterSubject: "orders.new"}))
	if err := js.DeleteConsumer(t.Context(), "orders", "billing"); err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}

	calls, err := s.Mutations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := make([]string, 0, len(calls))
	for _, c := range calls {
		got = append(got, c.Client+": "+c.String())
	}
	want := []string{
		"someone: STREAM.CREATE orders",
		"someone: STREAM.CREATE copy refused: subjects overlap with an existing stream (10065)",
		"someone: CONSUMER.CREATE orders/billing",
		"someone: CONSUMER.DELETE orders/billing",
		"someone: STREAM.DELETE orders",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestCallsMissNothingUnderLoad(t *testing.T) {
	s := start(t, natsserver.Options{})
	js := connect(t, s, "loader")
	const streams = 50
	for i := range streams {
		name := fmt.Sprintf("s%02d", i)
		must(t)(js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Storage: jetstream.MemoryStorage}))
		calls, err := s.Mutations(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(calls) != i+1 || calls[i].Stream != name {
			t.Fatalf("after %d creates the log holds %d calls", i+1, len(calls))
		}
	}
}

func TestADataFolderSurvivesARestart(t *testing.T) {
	dir := t.TempDir()
	first := start(t, natsserver.Options{Dir: dir})
	must(t)(connect(t, first, "a").CreateStream(t.Context(), jetstream.StreamConfig{Name: "kept"}))
	port := first.Port()
	first.Stop()

	second := start(t, natsserver.Options{Dir: dir, Port: port})
	must(t)(connect(t, second, "b").Stream(t.Context(), "kept"))
	if got := second.Port(); got != port {
		t.Errorf("port %d, want the same as before: %d", got, port)
	}
}

func TestStopLeavesNothingBehind(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := start(t, natsserver.Options{})
	s.Stop()
	s.Stop()
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if _, err := s.Calls(t.Context()); err == nil {
		t.Error("a stopped server still answers with calls")
	}
}

func TestATakenPortIsAClearError(t *testing.T) {
	first := start(t, natsserver.Options{})
	second, err := natsserver.Start(natsserver.Options{Port: first.Port()})
	if err == nil {
		second.Stop()
		t.Fatal("two servers on one port")
	}
	t.Log(err)
}

func start(t *testing.T, o natsserver.Options) *natsserver.Server {
	t.Helper()
	s, err := natsserver.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

func connect(t *testing.T, s *natsserver.Server, name string) jetstream.JetStream {
	t.Helper()
	conn, err := s.Connect(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func must(t *testing.T) func(any, error) {
	t.Helper()
	return func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}
