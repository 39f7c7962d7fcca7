package faults

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	rabbithole "github.com/michaelklishin/rabbit-hole/v3"
	rabbitmqv1beta1 "github.com/rabbitmq/cluster-operator/v2/api/v1beta1"
	topology "github.com/rabbitmq/messaging-topology-operator/api/v1beta1"
	"github.com/rabbitmq/messaging-topology-operator/internal/controller"
	webhookv1beta1 "github.com/rabbitmq/messaging-topology-operator/internal/webhook/v1beta1"
	"github.com/rabbitmq/messaging-topology-operator/rabbitmqclient"
	"github.com/trimtab-dev/trimtab/kubesim/fault"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rabbit is the part of RabbitMQ's HTTP API that the operator uses for vhosts, queues and exchanges. Its keys are
// paths such as queues/shop/orders, its values what was put there. The names are those of the Kubernetes objects.
type rabbit struct {
	mu  sync.Mutex
	all map[string]string
}

func (f *rabbit) Clone() fault.ExternalAPI {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &rabbit{all: maps.Clone(f.all)}
}

func (f *rabbit) Resources() (all []fault.Resource) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for path, body := range f.all {
		part := strings.Split(path, "/")
		if part[0] == "vhost-limits" {
			continue
		}
		owner := part[len(part)-1]
		for _, limit := range []string{"max-connections", "max-queues"} {
			if v, ok := f.all["vhost-limits/"+owner+"/"+limit]; ok && part[0] == "vhosts" {
				body += " " + limit + v
			}
		}
		all = append(all, fault.Resource{Kind: part[0], ID: path, Owner: "default/" + owner, State: body, Ready: true})
	}
	return all
}

func (f *rabbit) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		answer := func(code int, body any) { w.WriteHeader(code); _ = json.NewEncoder(w).Encode(body) }
		path := strings.TrimPrefix(r.URL.EscapedPath(), "/api/")
		part := strings.Split(path, "/")
		vhost, _ := url.PathUnescape(part[1])
		_, vhostExists := f.all["vhosts/"+vhost]
		old, exists := f.all[path]
		notFound := map[string]string{"error": "Object Not Found", "reason": "Not Found"}
		switch {
		case part[0] != "vhosts" && !vhostExists, r.Method == "DELETE" && !exists:
			answer(404, notFound)
		case r.Method == "GET" && part[0] == "vhost-limits":
			value := map[string]int{}
			for p, body := range f.all {
				var v struct{ Value int }
				if name, ok := strings.CutPrefix(p, path+"/"); ok && json.Unmarshal([]byte(body), &v) == nil {
					value[name] = v.Value
				}
			}
			if len(value) == 0 {
				answer(200, []any{})
				return
			}
			answer(200, []any{map[string]any{"vhost": vhost, "value": value}})
		case r.Method == "PUT":
			body, _ := io.ReadAll(r.Body)
			if exists && old != string(body) && (part[0] == "queues" || part[0] == "exchanges") {
				answer(400, map[string]string{"error": "bad_request", "reason": "inequivalent arg"})
				return
			}
			f.all[path] = string(body)
			w.WriteHeader(map[bool]int{true: 204, false: 201}[exists])
		case r.Method == "DELETE":
			delete(f.all, path)
			for p := range f.all { // a vhost goes with all that is in it
				if s := strings.Split(p, "/"); part[0] == "vhosts" && s[1] == part[1] {
					delete(f.all, p)
				}
			}
			w.WriteHeader(204)
		default:
			answer(405, notFound)
		}
	})
}

func setUp(mgr ctrl.Manager, env *fault.Env) error {
	transport := fault.HTTP(env, (*rabbit).Handler)
	factory := func(creds map[string]string, tls bool, pool *x509.CertPool) (rabbitmqclient.Client, error) {
		c, err := rabbitmqclient.RabbitholeClientFactory(creds, tls, pool)
		if err == nil {
			c.(*rabbithole.Client).SetTransport(transport)
		}
		return c, err
	}
	set := func(name string, obj client.Object, list client.ObjectList, f controller.ReconcileFunc) error {
		return (&controller.TopologyReconciler{
			Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Type: obj, ListType: list, Log: ctrl.Log.WithName(name), Scheme: mgr.GetScheme(),
			Recorder: mgr.GetEventRecorder(name), RabbitmqClientFactory: factory, ReconcileFunc: f,
		}).SetupWithManager(mgr)
	}
	return errors.Join(
		set(controller.QueueControllerName, &topology.Queue{}, &topology.QueueList{}, &controller.QueueReconciler{}),
		set(controller.ExchangeControllerName, &topology.Exchange{}, &topology.ExchangeList{}, &controller.ExchangeReconciler{}),
		set(controller.VhostControllerName, &topology.Vhost{}, &topology.VhostList{}, &controller.VhostReconciler{Client: mgr.GetClient()}),
		webhookv1beta1.SetupQueueWebhookWithManager(mgr), webhookv1beta1.SetupQueueDefaulterWebhookWithManager(mgr),
		webhookv1beta1.SetupExchangeWebhookWithManager(mgr), webhookv1beta1.SetupVhostWebhookWithManager(mgr),
	)
}

// has expects that RabbitMQ has what was declared at path, with text in it.
func has(path, text string) func(context.Context, *fault.World) error {
	return func(_ context.Context, w *fault.World) error {
		for _, r := range w.ExternalAPI.Resources() {
			if r.ID == path && strings.Contains(r.State, text) {
				return nil
			}
		}
		return fmt.Errorf("no %s with %s in %v", path, text, w.ExternalAPI.Resources())
	}
}

func TestFaults(t *testing.T) {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: "default"} }
	shop, orders, events := &topology.Vhost{ObjectMeta: meta("shop")}, &topology.Queue{ObjectMeta: meta("orders")}, &topology.Exchange{ObjectMeta: meta("events")}
	running := func(ctx context.Context, w *fault.World) error {
		return w.Client.Status().Patch(ctx, &rabbitmqv1beta1.RabbitmqCluster{ObjectMeta: meta("test")}, client.RawPatch(types.MergePatchType,
			[]byte(`{"status":{"conditions":[],"binding":{"name":"test-default-user"},"defaultUser":{"serviceReference":{"name":"test","namespace":"default"}}}}`)))
	}
	fault.Run(t, fault.Scenario{
		Name: "topology",
		Operator: fault.Operator{
			CRDs: fault.Files(os.DirFS("../../config/crd/bases"), fault.Module(t, "github.com/rabbitmq/cluster-operator/v2", "config/crd/bases")),
			RBAC: os.DirFS("../../config/rbac"), Webhooks: os.DirFS("../../config/webhook"),
			AddToScheme: func(s *runtime.Scheme) error {
				return errors.Join(topology.AddToScheme(s), rabbitmqv1beta1.AddToScheme(s))
			},
			Manager: ctrl.Options{
				Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {
					Label: labels.SelectorFromSet(labels.Set{topology.TopologyOperatorLabel: topology.TopologyOperatorLabelValue})}}},
				Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Service{}}}},
			},
			SetUp: setUp,
		},
		ExternalAPI: func() fault.ExternalAPI { return &rabbit{all: map[string]string{}} },
		Before: []fault.Step{
			fault.CreateYAML("{apiVersion: v1, kind: Secret, metadata: {name: test-default-user}, stringData: {username: admin, password: verysecret}}"),
			fault.CreateYAML("{apiVersion: v1, kind: Service, metadata: {name: test}, spec: {ports: [{name: management, port: 15672}]}}"),
			fault.CreateYAML("{apiVersion: rabbitmq.com/v1beta1, kind: RabbitmqCluster, metadata: {name: test}}"),
			{Name: "RabbitMQ is running", Do: running},
		},
		Steps: []fault.Step{
			fault.CreateYAML("{apiVersion: rabbitmq.com/v1beta1, kind: Vhost, metadata: {name: shop}, spec: {name: shop, defaultQueueType: quorum,"+
				" limits: {connections: 100}, rabbitmqClusterReference: {name: test}}}").Becomes(shop, "Ready").Expecting(has("vhosts/shop", `max-connections{"value":100}`)),
			fault.CreateYAML("{apiVersion: rabbitmq.com/v1beta1, kind: Queue, metadata: {name: orders}, spec: {name: orders, vhost: shop, type: quorum,"+
				" durable: true, rabbitmqClusterReference: {name: test}}}").Becomes(orders, "Ready").Expecting(has("queues/shop/orders", "quorum")),
			fault.CreateYAML("{apiVersion: rabbitmq.com/v1beta1, kind: Exchange, metadata: {name: events}, spec: {name: events, vhost: shop, type: topic,"+
				" durable: true, rabbitmqClusterReference: {name: test}}}").Becomes(events, "Ready").Expecting(has("exchanges/shop/events", "topic")),
			fault.Merge(shop, `{"spec":{"limits":{"connections":null,"queues":50}}}`).Becomes(shop, "Ready").Expecting(has("vhosts/shop", `} max-queues{"value":50}`)),
			fault.Delete(events).Gone(events),
			fault.Delete(orders).Gone(orders),
			fault.Delete(shop).Gone(shop),
		},
	})
}
