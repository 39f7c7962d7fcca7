package kubesim_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/kubesim"
)

// lake returns a CRD like that of ponds, in a group that looks like a built-in one.
func lake(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	text, err := os.ReadFile("testdata/crd/ponds.yaml")
	must(t, err)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	must(t, yaml.UnmarshalStrict(text, crd))
	crd.Name, crd.Spec.Group = "lakes.water.k8s.io", "water.k8s.io"
	crd.Annotations = map[string]string{"api-approved.kubernetes.io": "unapproved, a test"}
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "lakes", Kind: "Lake"}
	return crd
}

// definitionClient is one that knows CRDs as Go objects.
func definitionClient(t *testing.T, c *kubesim.Cluster) client.Client {
	t.Helper()
	s := runtime.NewScheme()
	must(t, apiextensionsv1.AddToScheme(s))
	k, err := client.New(c.Config(), client.Options{Scheme: s})
	must(t, err)
	return k
}

func conditions(crd *apiextensionsv1.CustomResourceDefinition) string {
	var all []string
	for _, c := range crd.Status.Conditions {
		all = append(all, string(c.Type)+"="+string(c.Status)+" "+c.Reason)
	}
	return strings.Join(all, ", ")
}

func TestInstallCRD(t *testing.T) { synctest.Test(t, testInstallCRD) }

func testInstallCRD(t *testing.T) {
	began := time.Now()
	c, _ := newCluster(t)
	k := definitionClient(t, c)
	crd := lake(t)
	must(t, k.Create(t.Context(), crd))
	must(t, k.Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
	if diff := cmp.Diff("NamesAccepted=True NoConflicts, Established=True InitialNamesAccepted", conditions(crd)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	one := pond(t, "one", "")
	one.SetAPIVersion("water.k8s.io/v1")
	one.SetKind("Lake")
	must(t, k.Create(t.Context(), one)) // at once

	v2 := *crd.Spec.Versions[0].DeepCopy()
	v2.Name = "v2"
	crd.Spec.Versions[0].Storage = false
	crd.Spec.Versions = append(crd.Spec.Versions, v2)
	must(t, k.Update(t.Context(), crd))
	two := one.DeepCopy()
	two.SetAPIVersion("water.k8s.io/v2")
	if err := k.Get(t.Context(), client.ObjectKeyFromObject(two), two); err != nil {
		t.Errorf("an object in a version that came later: %v", err)
	}

	rival := lake(t)
	rival.Name, rival.Spec.Names.Plural, rival.Spec.Names.Singular = "coves.water.k8s.io", "coves", "cove"
	must(t, k.Create(t.Context(), rival))
	must(t, k.Get(t.Context(), client.ObjectKeyFromObject(rival), rival))
	if diff := cmp.Diff("NamesAccepted=False ListKindConflict, Established=False NotAccepted", conditions(rival)); diff != "" {
		t.Errorf("conditions of a CRD with the same kind (-want +got):\n%s", diff)
	}

	one.SetFinalizers([]string{"example.com/drain"})
	must(t, k.Update(t.Context(), one))
	must(t, k.Delete(t.Context(), crd))
	must(t, k.Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
	must(t, k.Get(t.Context(), client.ObjectKeyFromObject(one), one))
	if one.GetDeletionTimestamp() == nil {
		t.Error("the CRD is deleted, its objects are not")
	}
	if err := k.Create(t.Context(), func() client.Object { o := two.DeepCopy(); o.SetResourceVersion(""); o.SetName("two"); return o }()); !apierrors.IsForbidden(err) {
		t.Errorf("creation under a CRD that goes: %v; want it to be forbidden", err)
	}
	one.SetFinalizers(nil)
	must(t, k.Update(t.Context(), one))
	if err := k.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); !apierrors.IsNotFound(err) {
		t.Errorf("the CRD without objects: %v; want not found", err)
	}
	must(t, k.Get(t.Context(), client.ObjectKeyFromObject(rival), rival))
	if diff := cmp.Diff("NamesAccepted=True NoConflicts, Established=True InitialNamesAccepted", conditions(rival)); diff != "" {
		t.Errorf("the names are free, the other CRD's conditions (-want +got):\n%s", diff)
	}
	if waited := time.Since(began); waited != 0 {
		t.Errorf("all of it took %s; nothing should wait", waited)
	}
}

func TestConversionWebhook(t *testing.T) {
	crd := lake(t)
	v2 := *crd.Spec.Versions[0].DeepCopy()
	v2.Name, v2.Storage = "v2", false
	crd.Spec.Versions = append(crd.Spec.Versions, v2)
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: new("https://nowhere.example.com/convert")},
		},
	}
	c := kubesim.New(t, kubesim.Options{Definitions: []*apiextensionsv1.CustomResourceDefinition{crd}})
	k := newClient(t, c.Config())
	one := pond(t, "one", "")
	one.SetAPIVersion("water.k8s.io/v1")
	one.SetKind("Lake")
	if err := k.Create(t.Context(), one); err != nil {
		t.Errorf("in the storage version: %v", err)
	}
	one.SetAPIVersion("water.k8s.io/v2")
	if err := k.Get(t.Context(), client.ObjectKeyFromObject(one), one); err == nil || !strings.Contains(err.Error(), "kubesim calls no webhooks") {
		t.Errorf("in another version: %v; want to be told that no webhooks are called", err)
	}
}

func TestGivenCRDsAreObjects(t *testing.T) {
	c, _ := newCluster(t)
	k := definitionClient(t, c)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	must(t, k.Get(t.Context(), client.ObjectKey{Name: "ponds.example.com"}, crd))
	must(t, k.Delete(t.Context(), crd))
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	if must(t, k.List(t.Context(), list)); len(list.Items) != 0 {
		t.Errorf("%d CRDs are left", len(list.Items))
	}
	if err := k.Create(t.Context(), pond(t, "north", "")); !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		t.Errorf("a pond without its CRD: %v; want it to be unknown", err)
	}
}

func TestDiscovery(t *testing.T) {
	c := kubesim.New(t, kubesim.Options{
		CRDs:        os.DirFS("testdata/crd"),
		Definitions: []*apiextensionsv1.CustomResourceDefinition{lake(t)},
	})
	type facts struct{ Groups, Ponds, Lakes, Core, Apps string }
	want := facts{
		Groups: "v1 admissionregistration.k8s.io/v1 apiextensions.k8s.io/v1 apps/v1 authentication.k8s.io/v1 authorization.k8s.io/v1 " +
			"autoscaling/v2 batch/v1 certificates.k8s.io/v1 coordination.k8s.io/v1 discovery.k8s.io/v1 events.k8s.io/v1 example.com/v1 " +
			"networking.k8s.io/v1 node.k8s.io/v1 policy/v1 rbac.authorization.k8s.io/v1 scheduling.k8s.io/v1 storage.k8s.io/v1 water.k8s.io/v1",
		Ponds: "ponds ponds/scale ponds/status",
		Lakes: "lakes lakes/scale lakes/status",
		Core: "bindings configmaps endpoints events limitranges namespaces namespaces/finalize namespaces/status nodes nodes/status " +
			"persistentvolumeclaims persistentvolumeclaims/status persistentvolumes persistentvolumes/status pods pods/binding " +
			"pods/ephemeralcontainers pods/eviction pods/resize pods/status podtemplates replicationcontrollers replicationcontrollers/scale " +
			"replicationcontrollers/status resourcequotas resourcequotas/status secrets serviceaccounts serviceaccounts/token services services/status",
		Apps: "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status replicasets replicasets/scale " +
			"replicasets/status statefulsets statefulsets/scale statefulsets/status",
	}
	for name, legacy := range map[string]bool{"aggregated": false, "one by one": true} {
		t.Run(name, func(t *testing.T) {
			d, err := discovery.NewDiscoveryClientForConfig(c.Config())
			must(t, err)
			d.UseLegacyDiscovery = legacy
			groups, lists, err := d.ServerGroupsAndResources()
			must(t, err)
			var preferred []string
			for _, g := range groups {
				preferred = append(preferred, g.PreferredVersion.GroupVersion)
			}
			resources := map[string]string{}
			for _, l := range lists {
				var names []string
				for _, r := range l.APIResources {
					names = append(names, r.Name)
				}
				resources[l.GroupVersion] = strings.Join(sorted(names), " ")
			}
			got := facts{strings.Join(sorted(preferred), " "), resources["example.com/v1"], resources["water.k8s.io/v1"], resources["v1"], resources["apps/v1"]}
			slices.Sort(preferred)
			want := want
			want.Groups = strings.Join(sorted(strings.Split(want.Groups, " ")), " ")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	d, err := discovery.NewDiscoveryClientForConfig(c.Config())
	must(t, err)
	v, err := d.ServerVersion()
	must(t, err)
	if v.String() != kubesim.KubernetesVersion {
		t.Errorf("version %s; want %s", v, kubesim.KubernetesVersion)
	}
}

func TestVersionIsThatOfTheCode(t *testing.T) {
	text, err := os.ReadFile("go.mod")
	must(t, err)
	if want := "k8s.io/kubernetes " + kubesim.KubernetesVersion + "\n"; !strings.Contains(string(text), want) {
		t.Errorf("go.mod does not require %s", want)
	}
}

func TestTable(t *testing.T) {
	c, k := newCluster(t)
	must(t, k.Create(t.Context(), pond(t, "north", "")))
	table := &metav1.Table{}
	must(t, clientset(t, c.Config()).CoreV1().RESTClient().Get().AbsPath("/apis/example.com/v1/ponds").
		SetHeader("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").Do(t.Context()).Into(table))
	var columns []string
	for _, column := range table.ColumnDefinitions {
		columns = append(columns, column.Name)
	}
	if diff := cmp.Diff([]any{[]string{"Name", "Size"}, []any{"north", int64(3)}}, []any{columns, table.Rows[0].Cells}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWrongCRDs(t *testing.T) {
	for name, test := range map[string]struct{ why, text, want string }{
		"no YAML":       {"the file is named", "{", "read CRDs: d/x.yaml: "},
		"old version":   {"the way out is named", "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition", "write apiextensions.k8s.io/v1"},
		"unknown field": {"a typing error is found", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspecs: {}", `unknown field "specs"`},
		"invalid":       {"the server's own words", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b}", `install CRD a.b: CustomResourceDefinition.apiextensions.k8s.io "a.b" is invalid`},
	} {
		t.Run(name, func(t *testing.T) {
			fake := &failing{TB: t}
			func() {
				defer func() { _ = recover() }()
				kubesim.New(fake, kubesim.Options{CRDs: fstest.MapFS{"d/x.yaml": {Data: []byte(test.text)}, "README": {}}})
			}()
			if !strings.Contains(fake.said, test.want) {
				t.Errorf("%s: failed with %q; want %q in it", test.why, fake.said, test.want)
			}
		})
	}
}

// failing is a test that may fail.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Fatal(args ...any) {
	f.said = fmt.Sprint(args...)
	panic(f)
}
