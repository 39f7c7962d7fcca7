package kubesim_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim"
)

func clientset(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	must(t, err)
	return c
}

func service(name string, kind corev1.ServiceType) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.ServiceSpec{Type: kind, Ports: []corev1.ServicePort{
			{Name: "a", Port: 80}, {Name: "b", Port: 81},
		}},
	}
}

func TestServiceNumbers(t *testing.T) {
	_, k := newCluster(t)
	one, two := service("one", corev1.ServiceTypeNodePort), service("two", corev1.ServiceTypeClusterIP)
	must(t, k.Create(t.Context(), one))
	must(t, k.Create(t.Context(), two))
	_, again := newCluster(t)
	same := service("one", corev1.ServiceTypeNodePort)
	must(t, again.Create(t.Context(), same))
	if diff := cmp.Diff(one.Spec, same.Spec); diff != "" {
		t.Errorf("the same service in another cluster (-one +other):\n%s", diff)
	}
	if !strings.HasPrefix(one.Spec.ClusterIP, "10.96.") || one.Spec.ClusterIP == two.Spec.ClusterIP {
		t.Errorf("addresses %s and %s; want two different ones of 10.96.0.0/16", one.Spec.ClusterIP, two.Spec.ClusterIP)
	}
	a, b := one.Spec.Ports[0].NodePort, one.Spec.Ports[1].NodePort
	if a < 30000 || b > 32767 || a == b {
		t.Errorf("node ports %d and %d; want two different ones from 30000 to 32767", a, b)
	}
	for name, change := range map[string]func(*corev1.Service){
		"an address that is taken":   func(s *corev1.Service) { s.Spec.ClusterIP = one.Spec.ClusterIP },
		"an address of another net":  func(s *corev1.Service) { s.Spec.ClusterIP = "192.168.0.1" },
		"a node port that is taken":  func(s *corev1.Service) { s.Spec.Ports[0].NodePort = a },
		"a node port of no service":  func(s *corev1.Service) { s.Spec.Ports[0].NodePort = 80 },
		"a family that is not there": func(s *corev1.Service) { s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol} },
	} {
		s := service("three", corev1.ServiceTypeNodePort)
		change(s)
		if err := k.Create(t.Context(), s); !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v; want it to be invalid", name, err)
		}
	}
	must(t, k.Delete(t.Context(), one))
	three := service("three", corev1.ServiceTypeNodePort)
	three.Spec.ClusterIP, three.Spec.Ports[0].NodePort = one.Spec.ClusterIP, a
	if err := k.Create(t.Context(), three); err != nil {
		t.Errorf("what a deleted service had: %v", err)
	}
}

func TestPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, k := newCluster(t)
		pods := clientset(t, c.Config()).CoreV1().Pods("default")
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", Labels: map[string]string{"app": "p"}}}
		p.Spec = deployment("p").Spec.Template.Spec
		must(t, k.Create(t.Context(), p))
		must(t, pods.Bind(t.Context(), &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: "p"}, Target: corev1.ObjectReference{Kind: "Node", Name: "n"},
		}, metav1.CreateOptions{}))
		must(t, k.Get(t.Context(), client.ObjectKeyFromObject(p), p))
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
		must(t, k.Status().Update(t.Context(), p))

		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b", Generation: 1}}
		budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: p.Labels}
		must(t, k.Create(t.Context(), budget))
		budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, CurrentHealthy: 1, DesiredHealthy: 1, ExpectedPods: 1}
		must(t, k.Status().Update(t.Context(), budget))
		evict := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
		if err := pods.EvictV1(t.Context(), evict); !apierrors.IsTooManyRequests(err) {
			t.Errorf("eviction against a budget: %v; want too many requests", err)
		}
		budget.Status.DisruptionsAllowed = 1
		must(t, k.Status().Update(t.Context(), budget))
		must(t, pods.EvictV1(t.Context(), evict))

		must(t, k.Get(t.Context(), client.ObjectKeyFromObject(p), p))
		got := []any{p.Spec.NodeName, p.DeletionTimestamp.Sub(time.Now())}
		if diff := cmp.Diff([]any{"n", 30 * time.Second}, got); diff != "" {
			t.Errorf("node and time to stop (-want +got):\n%s", diff)
		}
	})
}

func TestNamesAndJobs(t *testing.T) {
	run := func(t *testing.T) (seen []string) {
		_, k := newCluster(t)
		for range 3 {
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "feed-"}}
			job.Spec.Template.Spec = deployment("p").Spec.Template.Spec
			job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
			must(t, k.Create(t.Context(), job))
			if got := job.Spec.Selector.MatchLabels["batch.kubernetes.io/controller-uid"]; got != string(job.UID) {
				t.Errorf("job %s selects the pods of %s; want its UID %s", job.Name, got, job.UID)
			}
			seen = append(seen, job.Name)
		}
		p := pond(t, "", "")
		p.SetName("")
		p.SetGenerateName(strings.Repeat("x", 70))
		must(t, k.Create(t.Context(), p))
		if len(p.GetName()) != 63 {
			t.Errorf("generated a name of %d characters; want 63", len(p.GetName()))
		}
		return append(seen, p.GetName())
	}
	first, second := run(t), run(t)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("two equal runs (-first +second):\n%s", diff)
	}
	if first[0] == first[1] || len(first[0]) != len("feed-")+5 {
		t.Errorf("names %v; want different ones with five characters more", first)
	}
}

func TestServiceAccountToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, k := newCluster(t)
		admin := clientset(t, c.Config())
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "duck"}}
		must(t, k.Create(t.Context(), account))
		token, err := admin.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "duck", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		must(t, err)
		config := c.Config()
		config.BearerToken = token.Status.Token
		duck := clientset(t, config)
		type facts struct {
			Name     string
			Reviewed bool
			Denied   bool
		}
		look := func() facts {
			self, err := duck.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
			if err != nil && !apierrors.IsUnauthorized(err) {
				t.Fatal(err)
			}
			review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token.Status.Token}}
			review, err = admin.AuthenticationV1().TokenReviews().Create(t.Context(), review, metav1.CreateOptions{})
			must(t, err)
			_, err = duck.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
			return facts{self.Status.UserInfo.Username, review.Status.Authenticated, apierrors.IsForbidden(err)}
		}
		if diff := cmp.Diff(facts{"system:serviceaccount:default:duck", true, true}, look()); diff != "" {
			t.Errorf("with a token (-want +got):\n%s", diff)
		}
		must(t, k.Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "r"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "duck"}},
		}))
		must(t, k.Create(t.Context(), &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "r"},
			Rules:      []rbacv1.PolicyRule{{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"pods"}}},
		}))
		if diff := cmp.Diff(facts{"system:serviceaccount:default:duck", true, false}, look()); diff != "" {
			t.Errorf("with a role (-want +got):\n%s", diff)
		}
		time.Sleep(time.Hour)
		if diff := cmp.Diff(facts{}, look()); diff != "" {
			t.Errorf("an hour later (-want +got):\n%s", diff)
		}
	})
}

func TestUsers(t *testing.T) {
	c, k := newCluster(t)
	must(t, k.Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "angler"},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{"example.com"}, Resources: []string{"ponds"}}},
	}))
	must(t, k.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "anglers"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "angler"},
		Subjects: []rbacv1.Subject{
			{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "club"},
			{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:serviceaccounts:lake"},
		},
	}))
	must(t, k.Create(t.Context(), pond(t, "north", "")))
	impersonated := c.Config()
	impersonated.Impersonate = rest.ImpersonationConfig{UserName: "jane", Groups: []string{"club"}}
	for name, test := range map[string]struct {
		why    string
		config *rest.Config
		may    bool
	}{
		"administrator":   {"may all", c.Config(), true},
		"stranger":        {"no role", c.As("jane"), false},
		"member":          {"by group", c.As("jane", "club"), true},
		"service account": {"the server adds its groups", c.As("system:serviceaccount:lake:duck"), true},
		"impersonated":    {"an administrator as somebody else", impersonated, true},
	} {
		t.Run(name, func(t *testing.T) {
			of := newClient(t, test.config) // discovery is open to all of them
			if err := of.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "north"}, pond(t, "north", "")); (err == nil) != test.may {
				t.Errorf("%s: get: %v; want allowed: %t", test.why, err, test.may)
			}
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Group: "example.com", Resource: "ponds", Namespace: "default"},
			}}
			if must(t, of.Create(t.Context(), review)); review.Status.Allowed != test.may {
				t.Errorf("%s: review says %t; want %t", test.why, review.Status.Allowed, test.may)
			}
		})
	}
}

func TestControllers(t *testing.T) {
	for name, test := range map[string]struct {
		why    string
		manual bool
		want   []string // gone, before and after Settle
	}{
		"by themselves": {"the answer to a delete comes after its consequences", false, []string{"dependent inhabitant namespace", "dependent inhabitant namespace"}},
		"on demand":     {"a test says when", true, []string{"", "dependent inhabitant namespace"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := kubesim.New(t, kubesim.Options{Manual: test.manual})
			k := newClient(t, c.Config())
			owner, dependent := configMap("owner"), configMap("dependent")
			must(t, k.Create(t.Context(), owner))
			dependent.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID}}
			must(t, k.Create(t.Context(), dependent))
			town := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "town"}}
			must(t, k.Create(t.Context(), town))
			inhabitant := configMap("inhabitant")
			inhabitant.Namespace = "town"
			must(t, k.Create(t.Context(), inhabitant))

			must(t, k.Delete(t.Context(), owner))
			must(t, k.Delete(t.Context(), town))
			gone := func() string {
				var names []string
				for name, o := range map[string]client.Object{"dependent": dependent, "inhabitant": inhabitant, "namespace": town} {
					if err := k.Get(t.Context(), client.ObjectKeyFromObject(o), o); apierrors.IsNotFound(err) {
						names = append(names, name)
					}
				}
				return strings.Join(sorted(names), " ")
			}
			got := []string{gone()}
			must(t, c.Settle(t.Context()))
			if diff := cmp.Diff(test.want, append(got, gone())); diff != "" {
				t.Errorf("%s: gone before and after Settle (-want +got):\n%s", test.why, diff)
			}
		})
	}
}

func TestControllersAreFreeInTheirOrder(t *testing.T) {
	for name, test := range map[string]struct {
		pick func(wanted []string) int
		want []string // what they wanted to do, each time
		err  string
	}{
		"no choice": {nil, nil, ""},
		"last first": {func(wanted []string) int { return len(wanted) - 1 }, []string{
			"delete configmaps default/a, whose owner is gone; delete configmaps default/b, whose owner is gone",
			"delete configmaps default/a, whose owner is gone",
		}, ""},
		"no index": {func(wanted []string) int { return len(wanted) }, []string{
			"delete configmaps default/a, whose owner is gone; delete configmaps default/b, whose owner is gone",
		}, "kubesim: Options.Pick returned 2 for a list of 2; it must return an index into it"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			o := kubesim.Options{Manual: true}
			if test.pick != nil {
				o.Pick = func(wanted []string) int {
					got = append(got, strings.Join(wanted, "; "))
					return test.pick(wanted)
				}
			}
			c := kubesim.New(t, o)
			k := newClient(t, c.Config())
			for _, name := range []string{"a", "b"} {
				o := configMap(name)
				o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "none", UID: "1"}}
				must(t, k.Create(t.Context(), o))
			}
			err := ""
			if failed := c.Settle(t.Context()); failed != nil {
				err = failed.Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" || err != test.err {
				t.Errorf("wanted each time (-want +got):\n%s\nerror %q; want %q", diff, err, test.err)
			}
		})
	}
}

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}
