package component_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/internal/controlplane"
	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/testenv"
)

// placed is a component that says where its dependents are.
type placed struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   placedSpec    `json:"spec"`
	Status bundle.Status `json:"status,omitzero"`
}

type placedSpec struct {
	bundle.Spec    `json:",inline"`
	api.ClientSpec `json:",inline"`

	User   string   `json:"user,omitempty"`
	Groups []string `json:"groups,omitempty"`
}

func (s *placedSpec) GetImpersonationUser() string     { return s.User }
func (s *placedSpec) GetImpersonationGroups() []string { return s.Groups }

// ToUnstructured implements component.Unstructurable.
func (s *placedSpec) ToUnstructured() map[string]any {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
	if err != nil {
		panic(err)
	}
	return out
}

func (p *placed) GetSpec() component.Unstructurable { return &p.Spec }

func (p *placed) GetStatus() *component.Status { return &p.Status.ComponentStatus }

// DeepCopyObject implements runtime.Object.
func (p *placed) DeepCopyObject() runtime.Object {
	out := &placed{TypeMeta: p.TypeMeta}
	p.DeepCopyInto(&out.ObjectMeta)
	p.Spec.Spec.DeepCopyInto(&out.Spec.Spec)
	p.Spec.ClientSpec.DeepCopyInto(&out.Spec.ClientSpec)
	out.Spec.User, out.Spec.Groups = p.Spec.User, slices.Clone(p.Spec.Groups)
	p.Status.DeepCopyInto(&out.Status)
	return out
}

type placedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []placed `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *placedList) DeepCopyObject() runtime.Object {
	out := &placedList{TypeMeta: l.TypeMeta, ListMeta: *l.DeepCopy()}
	for i := range l.Items {
		item, _ := l.Items[i].DeepCopyObject().(*placed)
		out.Items = append(out.Items, *item)
	}
	return out
}

func placedKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "tests.trimtab.dev", Version: "v1", Kind: "Placed"}
}

func addPlaced(s *runtime.Scheme) error {
	s.AddKnownTypeWithName(placedKind(), &placed{})
	s.AddKnownTypeWithName(placedKind().GroupVersion().WithKind("PlacedList"), &placedList{})
	metav1.AddToGroupVersion(s, placedKind().GroupVersion())
	return nil
}

// site is a second cluster.
type site struct {
	cfg   *rest.Config
	admin client.WithWatch
	log   string // its audit log
}

func newSite(t *testing.T) *site {
	t.Helper()
	binary, err := controlplane.Binary(t.Context(), controlplane.Print(os.Stderr))
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "audit.log")
	cluster, err := controlplane.Start(t.Context(), controlplane.Options{Binary: binary, AuditLog: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Stop() })
	return &site{cfg: cluster.Config, admin: testenv.Client(t, cluster.Config), log: log}
}

// audited is a request as the audit log has it.
type audited struct {
	Verb      string    `json:"verb"`
	Path      string    `json:"requestURI"`
	UserAgent string    `json:"userAgent"`
	Received  time.Time `json:"requestReceivedTimestamp"`
	User      struct {
		Name string `json:"username"`
	} `json:"user"`
	Impersonated *struct {
		Name   string   `json:"username"`
		Groups []string `json:"groups"`
	} `json:"impersonatedUser"`
	Object struct {
		Resource, Namespace, Name, Subresource string
	} `json:"objectRef"`
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// sent returns the requests that a program sent to the site and that were answered.
func (s *site) sent(t *testing.T, userAgent string) []audited {
	t.Helper()
	data, err := os.ReadFile(s.log)
	if err != nil {
		t.Fatal(err)
	}
	var found []audited
	for line := range strings.Lines(string(data)) {
		var a audited
		if json.Unmarshal([]byte(line), &a) == nil && a.UserAgent == userAgent { // the last line may be half written
			found = append(found, a)
		}
	}
	return found
}

// kubeconfig returns that of a user.
func kubeconfig(t *testing.T, user *rest.Config) []byte {
	t.Helper()
	data, err := os.ReadFile(testenv.Kubeconfig(t, user))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// everything allows everything.
func everything() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}
}

// impersonator may impersonate, and nothing else.
func impersonator() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"users", "groups", "serviceaccounts"}, Verbs: []string{"impersonate"}}
}

// via returns a client configuration that reaches the same server through a line that can be cut.
func via(t *testing.T, cfg *rest.Config) (*rest.Config, *line) {
	t.Helper()
	server, err := url.Parse(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	l := &line{to: server.Host, open: map[net.Conn]bool{}}
	l.listen(t, "127.0.0.1:0")
	t.Cleanup(l.cut)
	cfg = rest.CopyConfig(cfg)
	cfg.Host = "https://" + l.address
	return cfg, l
}

// line is a connection to a server that can be cut.
type line struct {
	to, address string

	mu       sync.Mutex
	listener net.Listener
	open     map[net.Conn]bool
	// calls are the connections that were tried, and silent has them closed at once.
	calls  int
	silent bool
}

func (l *line) listen(t *testing.T, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	l.listener, l.address = listener, listener.Addr().String()
	l.mu.Unlock()
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			go l.carry(t.Context(), in)
		}
	}()
}

func (l *line) carry(ctx context.Context, in net.Conn) {
	l.mu.Lock()
	l.calls++
	silent := l.silent
	l.mu.Unlock()
	if silent {
		// Once the client's greeting was read, its end of the connection reads EOF, which nobody repeats by himself. If
		// it came later, the client would be told of a reset, upon which client-go asks ten times more.
		_, _ = in.Read(make([]byte, 1<<14))
		_ = in.Close()
		return
	}
	out, err := new(net.Dialer).DialContext(ctx, "tcp", l.to)
	if err != nil {
		_ = in.Close()
		return
	}
	l.mu.Lock()
	l.open[in], l.open[out] = true, true
	l.mu.Unlock()
	go func() {
		_, _ = io.Copy(out, in)
		_ = out.Close()
	}()
	_, _ = io.Copy(in, out)
	_ = in.Close()
	l.mu.Lock()
	delete(l.open, in)
	delete(l.open, out)
	l.mu.Unlock()
}

// idle reports whether nobody is connected.
func (l *line) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open) == 0
}

// silence closes all connections, and new ones at once, until it is lifted. They are counted.
func (l *line) silence(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = on
	if on {
		for c := range l.open {
			_ = c.Close()
		}
	}
}

// called is how many connections were tried so far.
func (l *line) called() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls
}

// cut closes all connections and refuses new ones.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.listener.Close()
	for c := range l.open {
		_ = c.Close()
	}
	clear(l.open)
}

// mend makes it work again.
func (l *line) mend(t *testing.T) {
	t.Helper()
	l.listen(t, l.address)
}

// placedBench is a namespace of a cluster with an operator of placed components.
type placedBench struct {
	t         *testing.T
	cfg       *rest.Config
	admin     client.WithWatch
	namespace string
	operator  string
	requests  *testenv.Log
	options   component.Options[*placed]
	logs      logs
	// setup adds the operator to a manager.
	setup func(ctrl.Manager) error
	stop  func()
}

func newPlacedBench(t *testing.T, cfg *rest.Config, change ...func(*placedBench)) *placedBench {
	t.Helper()
	crd := plain(placedKind().GroupKind())
	testenv.Install(t, cfg, crd)
	counted, requests := testenv.Requests(cfg)
	b := &placedBench{t: t, cfg: counted, admin: testenv.Client(t, cfg, addPlaced), namespace: testenv.Namespace(t, cfg), requests: requests}
	b.operator = b.namespace + ".op.test"
	b.cfg.UserAgent = b.operator
	b.options = component.Options[*placed]{
		Name: b.operator, RequeueInterval: time.Hour, HandoverGrace: -1,
		Loop: loop.Options[*placed]{Retry: loop.Retry{Initial: 20 * time.Millisecond, Max: 200 * time.Millisecond}},
	}
	b.setup = func(mgr ctrl.Manager) error {
		return component.New(component.RenderFunc[*placed](renderPlaced), b.options).SetupWithManager(mgr)
	}
	for _, f := range change {
		f(b)
	}
	b.start()
	return b
}

// renderPlaced returns the objects of a component's spec.
func renderPlaced(_ context.Context, r component.RenderRequest[*placed]) (component.Set, error) {
	objects, err := (&bundle.Bundle{Spec: r.Component.Spec.Spec}).Render()
	return component.Objects(objects...), err
}

func (b *placedBench) start() {
	b.t.Helper()
	o := managerOptions(b.t, b.namespace, addPlaced)
	o.Logger = funcr.New(b.logs.add, funcr.Options{Verbosity: 7})
	_, b.stop = runManager(b.t, b.cfg, o, b.setup)
}

// component creates a component with a ConfigMap of its name in a namespace.
func (b *placedBench) component(name, namespace string, change func(*placedSpec)) *placed {
	b.t.Helper()
	m := configMap(name, "1")
	m.Namespace = namespace
	raw, err := json.Marshal(m)
	if err != nil {
		b.t.Fatal(err)
	}
	obj := &placed{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}
	obj.Spec.Objects = []runtime.RawExtension{{Raw: raw}}
	change(&obj.Spec)
	if err := b.admin.Create(b.t.Context(), obj); err != nil {
		b.t.Fatal(err)
	}
	return obj
}

// secret stores a kubeconfig, and from returns how a spec refers to it.
func (b *placedBench) secret(name string, kubeconfig []byte) {
	b.t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}, Data: map[string][]byte{"value": kubeconfig}}
	err := b.admin.Create(b.t.Context(), s)
	if err != nil && client.IgnoreAlreadyExists(err) == nil {
		err = b.admin.Update(b.t.Context(), s)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func from(secret string) func(*placedSpec) {
	return func(s *placedSpec) {
		s.KubeConfig = &api.KubeConfigSpec{SecretRef: api.SecretKeyReference{Name: secret}}
	}
}

// as impersonates.
func as(user string, groups ...string) func(*placedSpec) {
	return func(s *placedSpec) { s.User, s.Groups = user, groups }
}

func (b *placedBench) await(name, why string, ok func(*placed) bool) *placed {
	b.t.Helper()
	return testenv.Wait(b.t, b.admin, &placed{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}, why, ok)
}

func (b *placedBench) ready(name string) *placed {
	b.t.Helper()
	return b.await(name, "ready", func(p *placed) bool {
		return p.Status.State == component.StateReady && p.Status.AppliedGeneration == p.Generation
	})
}

// says waits until the message has a text.
func (b *placedBench) says(name, text string) *placed {
	b.t.Helper()
	return b.await(name, text, func(p *placed) bool { return strings.Contains(p.Status.Message, text) })
}

func (b *placedBench) delete(name string) {
	b.t.Helper()
	if err := b.admin.Delete(b.t.Context(), &placed{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *placedBench) gone(name string) {
	b.t.Helper()
	testenv.Gone(b.t, b.admin, &placed{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}, "deleted")
}

// has reports whether a ConfigMap exists.
func has(t *testing.T, c client.Client, namespace, name string) bool {
	t.Helper()
	err := c.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, &corev1.ConfigMap{})
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

// within waits for something that cannot be watched.
func within(t *testing.T, why string, ok func() bool) {
	t.Helper()
	if !poll.Until(ok) {
		t.Fatalf("waited for %s", why)
	}
}

// soon waits for what would happen by itself, a minute later or more.
func soon(t *testing.T, why string, ok func() bool) {
	t.Helper()
	began := time.Now()
	within(t, why, ok)
	if took := time.Since(began); took >= time.Minute {
		t.Errorf("%s took %s, want less than a minute", why, took)
	}
}

// logs are what an operator logged. From level 8 on, client-go logs what it reads, Secrets too.
type logs struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *logs) add(prefix, args string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.WriteString(prefix + " " + args + "\n")
}

// with returns the first entry that has a text.
func (l *logs) with(text string) (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.all.String()) {
		if strings.Contains(line, text) {
			return line, true
		}
	}
	return "", false
}
