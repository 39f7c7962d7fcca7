package nats_test

import (
	"fmt"
	"net"
	"net/url"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
)

// What takes a cluster of NATS servers: how many of them hold a thing changes in place.
func TestReplicasInACluster(t *testing.T) {
	c := connect(t, startCluster(t, 3))

	obj := stream("orders", v1alpha1.StreamSpec{Replicas: new(1), Storage: new(v1alpha1.Storage("memory"))})
	b := streams(c)
	eventually(t.Context(), t, "the cluster takes a stream", func() bool { return b.tryCreate(t, obj) == nil })
	obj.Spec.Replicas = new(3)
	wantDiff(t, "differences", "spec.replicas 1 → 3", b.changes(t, obj).String())
	b.converge(t, obj)

	cons := consumer("billing", "orders", v1alpha1.ConsumerSpec{Replicas: new(1)})
	bc := consumers(c)
	eventually(t.Context(), t, "the cluster takes a consumer", func() bool { return bc.tryCreate(t, cons) == nil })
	cons.Spec.Replicas = new(3)
	wantDiff(t, "differences", "spec.replicas 1 → 3", bc.changes(t, cons).String())
	eventually(t.Context(), t, "the consumer grows with its stream", func() bool {
		err := bc.tryUpdate(t, cons)
		if err != nil && bc.driver.Classify(err) != external.ClassConflict {
			t.Fatalf("while the stream grows: %v; want it a conflict", err)
		}
		return err == nil
	})
	wantNothing(t, "afterwards", bc.changes(t, cons))

	bucket := keyValue("settings", v1alpha1.KeyValueSpec{Replicas: new(1), Storage: new(v1alpha1.Storage("memory"))})
	bk := keyValues(c)
	eventually(t.Context(), t, "the cluster takes a bucket", func() bool { return bk.tryCreate(t, bucket) == nil })
	bucket.Spec.Replicas = new(3)
	bk.converge(t, bucket)

	far := stream("far", v1alpha1.StreamSpec{Placement: &v1alpha1.Placement{Tags: []string{"nowhere"}}})
	err := b.tryCreate(t, far)
	if err == nil || b.driver.Classify(err) != external.ClassTransient {
		t.Errorf("a place that no server has: %v; want it transient, for servers may come", err)
	}
	vanish(t, bc, cons)
	vanish(t, b, obj)
	vanish(t, bk, bucket)
}

// vanish deletes a thing. A cluster may show it for a moment more.
func vanish[T client.Object, O any](t *testing.T, b bench[T, O], obj T) {
	t.Helper()
	// A thing that has no leader at the moment, as one that is being deleted, has nobody who answers for it.
	answered := func(err error) bool {
		if class := b.driver.Classify(err); err != nil && class != external.ClassTransient && class != external.ClassUnknown {
			t.Fatal(err)
		}
		return err == nil
	}
	eventually(t.Context(), t, "the cluster takes a deletion", func() bool { return answered(b.delete(t, obj)) })
	eventually(t.Context(), t, "what was deleted is gone", func() bool {
		seen, err := b.tryObserve(t, obj)
		return answered(err) && seen.Phase == external.PhaseMissing
	})
}

// startCluster starts servers that form one cluster and returns an address of it.
func startCluster(t *testing.T, n int) string {
	t.Helper()
	var routes []*url.URL
	var ports []int
	for range n {
		port := freePort(t)
		ports = append(ports, port)
		routes = append(routes, &url.URL{Scheme: "nats-route", Host: fmt.Sprintf("127.0.0.1:%d", port)})
	}
	var servers []*server.Server
	for i := range n {
		s, err := server.NewServer(&server.Options{
			ServerName: fmt.Sprintf("server-%d", i), Host: "127.0.0.1", Port: server.RANDOM_PORT,
			NoLog: true, NoSigs: true, JetStream: true, StoreDir: t.TempDir(), Routes: routes,
			Cluster: server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: ports[i]},
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		servers = append(servers, s)
	}
	for _, s := range servers {
		if !s.ReadyForConnections(poll.Patience) {
			t.Fatal("a server of the cluster does not start")
		}
	}
	eventually(t.Context(), t, "the cluster has a leader", func() bool {
		for _, s := range servers {
			if s.JetStreamIsLeader() {
				return len(s.JetStreamClusterPeers()) == n
			}
		}
		return false
	})
	return servers[0].ClientURL()
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
