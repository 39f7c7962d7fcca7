package natsserver_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
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

	var got []string
	for _, c := range s.Mutations() {
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
		calls := s.Mutations()
		if len(calls) != i+1 || calls[i].Stream != name || !calls[i].Answered {
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
}

func TestATakenPortIsAClearError(t *testing.T) {
	first := start(t, natsserver.Options{})
	second, err := natsserver.Start(natsserver.Options{Port: first.Port()})
	if err == nil {
		second.Stop()
		t.Fatal("two servers on one port")
	}
	if want := "choose another"; !strings.Contains(err.Error(), want) {
		t.Errorf("error %q names no way out (%q)", err, want)
	}
}

func TestAnsweredComesBeforeTheCallerKnows(t *testing.T) {
	answered, release := make(chan natsserver.Call), make(chan struct{})
	s := start(t, natsserver.Options{Answered: func(c natsserver.Call) {
		if c.Op == "STREAM.CREATE" {
			answered <- c
			<-release
		}
	}})
	js := connect(t, s, "caller")

	done := make(chan error, 1)
	go func() {
		_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "held"})
		done <- err
	}()
	call := <-answered
	// The server has the stream, the caller has no answer.
	onlooker := connect(t, s, "onlooker")
	must(t)(onlooker.Stream(t.Context(), "held"))
	if len(done) > 0 {
		t.Error("the caller has its answer before Answered returned")
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff("STREAM.CREATE held", call.String()); diff != "" {
		t.Errorf("call (-want +got):\n%s", diff)
	}
}

func TestACallThatNobodyAnsweredIsInTheLog(t *testing.T) {
	s := start(t, natsserver.Options{})
	conn, err := s.Connect("hasty")
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Publish("$JS.API.STREAM.DELETE.orders", nil); err != nil {
		t.Fatal(err)
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	calls := s.Mutations()
	if len(calls) != 1 || calls[0].String() != "STREAM.DELETE orders" || calls[0].Answered {
		t.Errorf("calls %+v, want one delete without an answer", calls)
	}
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

func TestARequestCanBeKeptFromTheServer(t *testing.T) {
	s := start(t, natsserver.Options{Received: func(c natsserver.Call) bool { return c.Op != "STREAM.CREATE" }})
	js := connect(t, s, "author")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "a"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the caller of a dropped request got %v, want no answer", err)
	}
	if _, err := js.Stream(t.Context(), "a"); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("a dropped request took effect: %v", err)
	}
	if got := s.Mutations(); len(got) != 0 {
		t.Errorf("the log has %v, want nothing", got)
	}
}

func TestUsersChangeWhileTheServerRuns(t *testing.T) {
	s := start(t, natsserver.Options{Users: []natsserver.User{{Name: "operator", Password: "old"}}})
	as := func(password string) error {
		conn, err := nats.Connect(s.URL(), nats.UserInfo("operator", password))
		if err == nil {
			conn.Close()
		}
		return err
	}
	if err := as("old"); err != nil {
		t.Errorf("the right password: %v", err)
	}
	if err := as("new"); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("a wrong password: %v", err)
	}
	ended := make(chan struct{})
	conn, err := nats.Connect(s.URL(), nats.UserInfo("operator", "old"), nats.NoReconnect(),
		nats.ClosedHandler(func(*nats.Conn) { close(ended) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	onlooker := connect(t, s, "onlooker")
	if err := s.SetUsers([]natsserver.User{{Name: "operator", Password: "new"}}); err != nil {
		t.Fatal(err)
	}
	<-ended // the connection of the old password
	if err := as("new"); err != nil {
		t.Errorf("the new password: %v", err)
	}
	must(t)(onlooker.CreateStream(t.Context(), jetstream.StreamConfig{Name: "still"}))
	if err := s.SetUsers(nil); err != nil {
		t.Fatal(err)
	}
	if err := as("any"); err != nil {
		t.Errorf("a server without users: %v", err)
	}
}
