package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/trimtab-dev/trimtab/internal/natsserver"
)

// natsClientName is the name of the connection by which the demo reads NATS and makes drift.
const natsClientName = "demo"

// natsClient reads and changes NATS over a connection of its own.
type natsClient struct {
	server *natsserver.Server
	conn   *nats.Conn
	js     jetstream.JetStream
}

func newNATSClient(server *natsserver.Server) (*natsClient, error) {
	conn, err := server.Connect(natsClientName)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(conn)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &natsClient{server: server, conn: conn, js: js}, nil
}

func (c *natsClient) close() { c.conn.Close() }

func (c *natsClient) streams(ctx context.Context) ([]string, error) {
	names := c.js.StreamNames(ctx)
	var out []string
	for name := range names.Name() {
		out = append(out, name)
	}
	return out, names.Err()
}

// has fails unless NATS has all of the resources. Each is the name of a stream, or of a
// consumer in the form stream/consumer.
func (c *natsClient) has(ctx context.Context, resources ...string) error {
	for _, resource := range resources {
		name, consumer, isConsumer := strings.Cut(resource, "/")
		var err error
		if isConsumer {
			_, err = c.js.Consumer(ctx, name, consumer)
		} else {
			_, err = c.js.Stream(ctx, name)
		}
		if err != nil {
			return fmt.Errorf("read %s from NATS: %w", resource, err)
		}
	}
	return nil
}

func (c *natsClient) limitOf(ctx context.Context, name string) (int64, error) {
	s, err := c.js.Stream(ctx, name)
	if err != nil {
		return 0, err
	}
	return s.CachedInfo().Config.MaxMsgs, nil
}

func (c *natsClient) limit(ctx context.Context, name string, messages int64) error {
	s, err := c.js.Stream(ctx, name)
	if err != nil {
		return err
	}
	changed := s.CachedInfo().Config
	changed.MaxMsgs = messages
	_, err = c.js.UpdateStream(ctx, changed)
	return err
}

func (c *natsClient) deleteConsumer(ctx context.Context, name, consumer string) error {
	return c.js.DeleteConsumer(ctx, name, consumer)
}

// writes returns the mutating requests that NATS received for a stream itself, except the
// demo's own.
func (c *natsClient) writes(name string) []natsserver.Call {
	return slices.DeleteFunc(c.server.Mutations(), func(call natsserver.Call) bool {
		return call.Client == natsClientName || call.Stream != name || call.Consumer != ""
	})
}

// count counts the requests that the operator made to Kubernetes and NATS for each object.
func (s *stage) count() (map[string]Cost, error) {
	costs := map[string]Cost{}
	for _, c := range s.nats.Calls() {
		if c.Client == natsClientName || c.Stream == "" {
			continue
		}
		object := objectOf(c)
		cost := costs[object]
		if c.Mutating() {
			cost.NATSWrites++
		} else {
			cost.NATSReads++
		}
		costs[object] = cost
	}
	return costs, s.countWrites(costs)
}

// objectOf returns the object for which the operator made a request, as "Kind/name".
func objectOf(c natsserver.Call) string {
	if c.Consumer != "" {
		return "Consumer/" + c.Consumer
	}
	if bucket, ok := strings.CutPrefix(c.Stream, "KV_"); ok {
		return "KeyValue/" + bucket
	}
	return "Stream/" + c.Stream
}

// countWrites counts writes to Kubernetes from the API server's audit log.
func (s *stage) countWrites(costs map[string]Cost) error {
	f, err := os.Open(s.file("audit.log"))
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	defer f.Close()
	user := "system:serviceaccount:" + operatorName + ":" + operatorName
	kinds := map[string]string{"streams": "Stream", "consumers": "Consumer", "keyvalues": "KeyValue"}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e struct {
			Stage, Verb string
			User        struct{ Username string }
			ObjectRef   struct{ Resource, Name string }
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("read the audit log: %w", err)
		}
		kind, ours := kinds[e.ObjectRef.Resource]
		if !ours || e.User.Username != user || e.Stage != "ResponseComplete" || !slices.Contains([]string{"create", "update", "patch", "delete"}, e.Verb) {
			continue
		}
		cost := costs[kind+"/"+e.ObjectRef.Name]
		cost.KubernetesWrites++
		costs[kind+"/"+e.ObjectRef.Name] = cost
	}
	return lines.Err()
}
