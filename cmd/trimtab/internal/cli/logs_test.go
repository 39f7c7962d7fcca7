package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/testenv"
)

// kubelet serves the logs of containers as a node does.
type kubelet struct {
	mu   sync.Mutex
	logs map[string]string // by pod/container, with /previous for that before the last restart
	late map[string]string // is logged as soon as a log has been read once more
	more chan string       // lines of the log that is followed
}

func (k *kubelet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/") // containerLogs/namespace/pod/container
	if len(parts) != 4 || parts[0] != "containerLogs" {
		http.NotFound(w, r)
		return
	}
	key := parts[2] + "/" + parts[3]
	if r.URL.Query().Get("previous") == "true" {
		key += "/previous"
	}
	k.mu.Lock()
	text, has := k.logs[key]
	if has && r.URL.Query().Get("follow") != "true" {
		k.logs[key], k.late[key] = text+k.late[key], ""
	}
	k.mu.Unlock()
	text = k.from(r, text)
	if !has {
		http.Error(w, "there is no log "+key, http.StatusNotFound)
		return
	}
	if r.URL.Query().Get("follow") != "true" {
		_, _ = io.WriteString(w, text)
		return
	}
	_, _ = io.WriteString(w, text)
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case text := <-k.more:
			_, _ = io.WriteString(w, k.from(r, text))
			_ = http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// from returns the lines that a request asks for: those since a time, with their times in front of them. A line that has none was
// written at the time of the one before it.
func (k *kubelet) from(r *http.Request, text string) string {
	since, _ := time.Parse(time.RFC3339, r.URL.Query().Get("sinceTime"))
	var at time.Time
	var all strings.Builder
	for line := range strings.Lines(text) {
		if _, rest, has := strings.Cut(line, `"time":"`); has {
			own, _, _ := strings.Cut(rest, `"`)
			at, _ = time.Parse(time.RFC3339Nano, own)
		}
		if at.Before(since) {
			continue
		}
		if r.URL.Query().Get("timestamps") == "true" {
			all.WriteString(at.Format(time.RFC3339Nano) + " ")
		}
		all.WriteString(line)
	}
	return all.String()
}

// logLine is a line of an operator's log about an object.
func logLine(second int, kind, name, namespace, uid, message string) string {
	return fmt.Sprintf(`{"time":"2026-01-02T03:04:%02d.5Z","level":"INFO","msg":%q,"reconcileID":"r%d","resource.apiVersion":"things.trimtab.dev/v1","resource.kind":%q,"resource.name":%q,"resource.namespace":%q,"resource.resourceVersion":"1","resource.generation":1,"resource.uid":%q}`+"\n",
		second, message, second, kind, name, namespace, uid)
}

// podOn makes a Pod of the operator on a node, whose container has restarted some times. It gets its status before its node: the
// nodes of a simulated cluster leave alone what runs already.
func (d *desk) podOn(c client.Client, node, name string, restarts int32) {
	d.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: name, Labels: map[string]string{"app": "op"}},
		Spec:       corev1.PodSpec{SchedulerName: "nobody", Containers: []corev1.Container{{Name: "manager", Image: "x"}}},
	}
	d.do(c.Create(d.t.Context(), pod))
	before := pod.DeepCopy()
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}}, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "manager", Image: "x", Ready: true, RestartCount: restarts, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}}
	d.do(c.Status().Patch(d.t.Context(), pod, client.MergeFrom(before))) // controllers write it, too
	d.do(c.SubResource("binding").Create(d.t.Context(), pod, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node}}))
}

// nodeOf makes a node whose kubelet is a server of this test.
func (d *desk) nodeOf(c client.Client, h http.Handler) string {
	d.t.Helper()
	server := httptest.NewTLSServer(h)
	d.t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	d.do(err)
	number, err := strconv.ParseInt(port, 10, 32)
	d.do(err)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: d.namespace}, Status: corev1.NodeStatus{
		Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}, {Type: corev1.NodeHostName, Address: "127.0.0.1"}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(number)}},
		Conditions:      []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Test", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}},
	}}
	node.Spec.Taints = []corev1.Taint{{Key: "example.org/test", Effect: corev1.TaintEffectNoSchedule}} // for the Pods of this test alone
	d.do(c.Create(d.t.Context(), node))
	ctx := context.WithoutCancel(d.t.Context())
	d.t.Cleanup(func() { _ = c.Delete(ctx, node) })
	return node.Name
}

// TestLogs: the lines about one object, of two replicas and from before a restart, in the order of time.
func TestLogs(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	c := testenv.Client(t, d.cfg, clientgoscheme.AddToScheme, thing.AddToScheme)
	o := &thing.Thing{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "a"}}
	d.do(c.Create(t.Context(), o))
	uid := string(o.UID)
	k := &kubelet{more: make(chan string), late: map[string]string{}, logs: map[string]string{
		"op-1/manager": logLine(4, "Thing", "a", d.namespace, uid, "fourth") + "panic: not JSON\n" + logLine(5, "Thing", "b", d.namespace, "x", "of another name") +
			logLine(6, "Gadget", "a", d.namespace, "x", "of another kind"),
		"op-1/manager/previous": logLine(1, "Thing", "a", d.namespace, uid, "first") + logLine(3, "Thing", "a", d.namespace, uid, "third") + logLine(3, "Thing", "a", "elsewhere", "x", "of another namespace"),
		"op-2/manager":          logLine(2, "Thing", "a", d.namespace, uid, "second") + logLine(2, "Thing", "a", d.namespace, "earlier", "of an earlier object"),
	}}
	node := d.nodeOf(c, k)
	d.podOn(c, node, "op-1", 1)
	d.podOn(c, node, "op-2", 0)
	labels := map[string]string{"app": "op"}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "op"}, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(0)), Paused: true, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "x"}}}},
	}}
	d.do(c.Create(t.Context(), deployment))
	args := []string{"logs", "thing/a", "--operator", d.namespace + "/op", "-n", d.namespace, "--kubeconfig", d.file}
	code, out := ask(t.Context(), args...)
	var got []string
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) > 4 {
			got = append(got, strings.Join(fields[2:], " "))
		}
	}
	want := []string{"op-1 INFO first reconcileID=r1", "op-2 INFO second reconcileID=r2", "op-1 INFO third reconcileID=r3", "op-1 INFO fourth reconcileID=r4"}
	if code != 0 || !slices.Equal(got, want) {
		t.Errorf("exit code %d, lines %q, want %q; it printed\n%s", code, got, want, out)
	}
	if _, out := ask(t.Context(), append(args, "-o", "json")...); !strings.HasPrefix(out, `{"time":"2026-01-02T03:04:01.5Z"`) || strings.Count(out, "\n") != 4 {
		t.Errorf("as JSON, it printed\n%s", out)
	}
	k.mu.Lock()
	k.late["op-1/manager"] = logLine(4, "Thing", "a", d.namespace, uid, "late") + logLine(4, "Thing", "a", d.namespace, uid, "fourth") + logLine(7, "Thing", "a", d.namespace, uid, "seventh")
	k.mu.Unlock()
	d.follow(k, args, uid)
}

// printed is an output that says when it contains a text.
type printed struct {
	mu    sync.Mutex
	text  bytes.Buffer
	wrote chan struct{}
}

func (w *printed) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.wrote <- struct{}{}:
	default:
	}
	return w.text.Write(p)
}

func (w *printed) has(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Contains(w.text.String(), text)
}

// follow: with -f, what is logged later is printed, once, and the command ends well when it is interrupted.
func (d *desk) follow(k *kubelet, args []string, uid string) {
	d.t.Helper()
	ctx, stop := context.WithCancel(d.t.Context())
	defer stop()
	out := &printed{wrote: make(chan struct{}, 1)}
	ended := make(chan int, 1)
	go func() {
		ended <- Main(ctx, append(slices.Clone(args), "-f"), Streams{In: strings.NewReader(""), Out: out, Err: out})
	}()
	deadline := time.After(poll.Patience)
	for n := 10; n < 12; n++ {
		text := "line " + strconv.Itoa(n)
		select {
		case k.more <- logLine(n, "Thing", "a", d.namespace, uid, text) + logLine(n, "Thing", "b", d.namespace, uid, "of another name"):
		case <-deadline:
			d.t.Fatalf("no log is followed; printed %q", out.text.String())
		}
		for !out.has(text) || !out.has("seventh") { // which was logged before the log was followed
			select {
			case <-out.wrote:
			case <-deadline:
				d.t.Fatalf("%q or \"seventh\" is not printed:\n%s", text, out.text.String())
			}
		}
	}
	stop()
	code, text := <-ended, out.text.String()
	if code != 0 || out.has("of another") {
		d.t.Errorf("exit code %d, printed\n%s", code, text)
	}
	for message, n := range map[string]int{"first": 1, "fourth": 2, "late": 1, "seventh": 1, "line 10": 1, "line 11": 1} {
		if got := strings.Count(text, "  "+message+"  "); got != n {
			d.t.Errorf("%q is printed %d times, want %d:\n%s", message, got, n, text)
		}
	}
}

// TestNoLogs: where there is no log, it says why.
func TestNoLogs(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(`apiVersion: things.trimtab.dev/v1
kind: Gadget
metadata: {name: g}
spec: {}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: plain}`)
	d.asks(asks{
		"another's kind":     {"no operator", []string{"logs", "configmap/plain"}, "", 1, []string{"the operator of ConfigMap is not found", "--operator NAMESPACE/NAME"}},
		"not a Deployment":   {"bad input", []string{"logs", "gadget/g", "--operator", "op"}, "", 1, []string{`--operator: "op" is not NAMESPACE/NAME`}},
		"no such Deployment": {"no Pods", []string{"logs", "gadget/g", "--operator", "NS/op"}, "", 1, []string{"operator NS/op has no Pods in this cluster that have started; its log is wherever it runs"}},
		"bad since":          {"bad input", []string{"logs", "gadget/g", "--since", "-1s"}, "", 1, []string{"--since: -1s is in the future"}},
		"only reading":       {"what is missing is said", []string{"logs", "thing/x"}, d.reader(), 1, []string{"leases of operators: forbidden", "--operator NAMESPACE/NAME"}},
		"may not list Pods":  {"what is missing is said", []string{"logs", "thing/x", "--operator", "NS/op"}, d.reader(), 1, []string{"the Pods of operator NS/op cannot be listed"}},
	})
	d.lead("logs-"+d.namespace, thing.GroupVersion.Group, "gadgets", 0)
	d.asks(asks{
		"outside the cluster": {"a leader without a Pod", []string{"logs", "gadget/g"}, "", 1, []string{"operator NS/logs-NS has no Pods in this cluster that have started; its leader is logs-NS-1_u"}},
	})
}
