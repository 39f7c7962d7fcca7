package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/operator/operatortest"
	v1 "github.com/trimtab-dev/trimtab/samples/folder/api/v1"
	"github.com/trimtab-dev/trimtab/testenv"
)

// asOperator makes the test binary the operator.
const asOperator = "TRIMTAB_TEST_AS_FOLDER"

func TestMain(m *testing.M) {
	if os.Getenv(asOperator) != "" {
		main()
	}
	os.Exit(m.Run())
}

// operatorTest is an operator process with a namespace on a real API server and a disk.
type operatorTest struct {
	t         *testing.T
	cfg       *rest.Config
	client    client.WithWatch
	namespace string
	disk      string
	flags     []string // of the operator
	account   operatortest.Account
	operator  *operatortest.Process
}

func newOperatorTest(t *testing.T, flags ...string) *operatorTest {
	t.Helper()
	cfg := testenv.Start(t)
	ot := &operatorTest{t: t, cfg: cfg, client: testenv.Client(t, cfg, v1.AddToScheme), namespace: testenv.Namespace(t, cfg), disk: t.TempDir()}
	ot.flags = append([]string{"--watch-namespaces", ot.namespace}, flags...)
	ot.account = operatortest.Self(asOperator).Install(t, cfg, ot.namespace, ot.flags...)
	return ot
}

// start runs the operator, as an account whose requests may take a way around.
func (ot *operatorTest) start(a operatortest.Account) {
	ot.t.Helper()
	// Without the lease nobody has to wait for that of a killed process to end.
	ot.operator = operatortest.Self(asOperator).Start(ot.t, a, append([]string{"--root", ot.disk, "--leader-elect=false"}, ot.flags...)...)
}

// create makes the object "orders".
func (ot *operatorTest) create(spec v1.FolderSpec) *v1.Folder {
	ot.t.Helper()
	f := &v1.Folder{ObjectMeta: metav1.ObjectMeta{Namespace: ot.namespace, Name: "orders"}, Spec: spec}
	ot.do(ot.client.Create(ot.t.Context(), f))
	return f
}

func (ot *operatorTest) merge(f *v1.Folder, body string) {
	ot.t.Helper()
	ot.do(ot.client.Patch(ot.t.Context(), f, client.RawPatch(types.MergePatchType, []byte(body))))
}

// ready waits until the object is Ready as it is asked for now.
func (ot *operatorTest) ready(f *v1.Folder) *v1.Folder {
	ot.t.Helper()
	generation := f.Generation
	return testenv.Wait(ot.t, ot.client, f, "the folder to be Ready", func(f *v1.Folder) bool {
		return f.Status.AppliedGeneration == generation && meta.IsStatusConditionTrue(f.Status.Conditions, api.ConditionReady)
	})
}

// look has the operator compare now what it would within ten minutes, and waits until it did.
func (ot *operatorTest) reconcile(f *v1.Folder, token string) *v1.Folder {
	ot.t.Helper()
	ot.merge(f, `{"metadata":{"annotations":{"`+api.AnnotationReconcile+`":"`+token+`"}}}`)
	return testenv.Wait(ot.t, ot.client, f, "the operator to have reconciled it", func(f *v1.Folder) bool { return f.Status.HandledReconcile == token })
}

// refused waits until the object says why it has no folder.
func (ot *operatorTest) refused(f *v1.Folder) {
	ot.t.Helper()
	want := `folder "orders" exists, and nothing shows that it belongs to this object; whoever runs the operator can allow annotation trimtab.dev/adoption=always, which adopts it, with --adoption-limit ` + ot.namespace + "=always"
	if slices.Contains(ot.flags, "always") {
		want = `folder "orders" exists, and nothing shows that it belongs to this object; set annotation trimtab.dev/adoption to "always" to adopt it`
	}
	f = testenv.Wait(ot.t, ot.client, f, "the object to be refused", func(f *v1.Folder) bool { return f.Status.State == "Failed" })
	c := meta.FindStatusCondition(f.Status.Conditions, api.ConditionReady)
	if c == nil || c.Reason != "NotOurs" || c.Message != want || f.Status.Message != want {
		ot.t.Errorf("Ready is %+v, the message %q; want NotOurs with %q", c, f.Status.Message, want)
	}
}

func (ot *operatorTest) delete(f *v1.Folder) {
	ot.t.Helper()
	ot.do(ot.client.Delete(ot.t.Context(), f))
	testenv.Gone(ot.t, ot.client, f, "the object to be gone")
}

// occupy makes a folder with a file in it that the operator knows nothing of.
func (ot *operatorTest) occupy() {
	ot.t.Helper()
	ot.do(os.Mkdir(filepath.Join(ot.disk, "orders"), 0o700))
	ot.do(os.WriteFile(filepath.Join(ot.disk, "orders", "precious"), nil, 0o600))
}

// want compares what is on disk: a line for each entry.
func (ot *operatorTest) want(why string, lines ...string) {
	ot.t.Helper()
	var got []string
	err := filepath.Walk(ot.disk, func(path string, info os.FileInfo, err error) error {
		if err == nil && path != ot.disk {
			got = append(got, info.Mode().String()+" "+strings.TrimPrefix(path, ot.disk+"/"))
		}
		return err
	})
	ot.do(err)
	if diff := cmp.Diff(lines, got); diff != "" {
		ot.t.Errorf("%s: on disk (-want +got):\n%s", why, diff)
	}
}

func (ot *operatorTest) do(err error) {
	ot.t.Helper()
	if err != nil {
		ot.t.Fatal(err)
	}
}

func TestLife(t *testing.T) {
	ot := newOperatorTest(t)
	ot.start(ot.account)
	path := filepath.Join(ot.disk, "orders")

	f := ot.ready(ot.create(v1.FolderSpec{}))
	ot.want("created", "drwxr-xr-x orders")
	ot.merge(f, `{"spec":{"readOnly":true}}`)
	f = ot.ready(f)
	ot.want("made read-only", "dr-xr-xr-x orders")

	ot.do(os.Chmod(path, 0o777))
	f = ot.reconcile(f, "1")
	ot.want("the mode was changed behind the operator's back", "dr-xr-xr-x orders")
	ot.do(os.Remove(path))
	f = ot.ready(ot.reconcile(f, "2"))
	ot.want("removed behind the operator's back", "dr-xr-xr-x orders")
	if f.Status.External == nil || f.Status.External.Incarnation != 2 {
		t.Errorf("external status %+v; want the second incarnation", f.Status.External)
	}

	ot.delete(f)
	ot.want("deleted")
	ot.operator.Stop()
}

// A folder that was there before is not ours: not after a restart of the operator either,
// and not when the object goes.
func TestFolderOfOthers(t *testing.T) {
	ot := newOperatorTest(t)
	ot.occupy()
	untouched := []string{"drwx------ orders", "-rw------- orders/precious"}
	ot.start(ot.account)
	f := ot.create(v1.FolderSpec{})
	ot.refused(f)
	ot.operator.Kill()
	ot.start(ot.account)
	ot.reconcile(f, "after a restart")
	ot.refused(f)
	ot.want("not ours", untouched...)
	ot.delete(f)
	ot.want("not ours, and the object is deleted", untouched...)
}

func TestAdoption(t *testing.T) {
	ot := newOperatorTest(t, "--adoption-limit", "always")
	ot.occupy()
	ot.start(ot.account)
	f := ot.create(v1.FolderSpec{ReadOnly: true})
	ot.refused(f)
	ot.merge(f, `{"metadata":{"annotations":{"`+api.AnnotationAdoption+`":"always"}}}`)
	f = ot.ready(f)
	ot.want("taken over", "dr-xr-xr-x orders", "-rw------- orders/precious")
	ot.delete(f)
	ot.want("what was taken over is ours to delete")
}

// The folder that a killed operator made is found again, because its record was durable
// before.
func TestKilledAfterMkdir(t *testing.T) {
	ot := newOperatorTest(t)
	// The first write after the folder is made is that of the status.
	g := ot.gate(func(path string, _ int) bool { return strings.HasSuffix(path, "/status") })
	ot.start(g.Account)
	f := ot.create(v1.FolderSpec{})
	g.await(t)
	ot.operator.Kill()
	ot.want("killed after Mkdir", "drwxr-xr-x orders")

	ot.start(ot.account)
	f = ot.ready(f)
	ot.want("started again", "drwxr-xr-x orders")
	if f.Status.External.Incarnation != 1 {
		t.Errorf("external status %+v; want the first incarnation", f.Status.External)
	}
	ot.delete(f)
	ot.want("deleted")
}

// A folder that somebody makes after the operator looked and before it calls Mkdir is not
// ours either.
func TestFolderAppearsBeforeMkdir(t *testing.T) {
	ot := newOperatorTest(t)
	const record = 2 // the first write is the finalizer
	g := ot.gate(func(_ string, number int) bool { return number == record })
	ot.start(g.Account)
	f := ot.create(v1.FolderSpec{})
	g.await(t)
	ot.occupy()
	close(g.open)
	testenv.Wait(t, ot.client, f, "Mkdir to be refused", func(f *v1.Folder) bool { return f.Status.State == "Failed" })
	ot.reconcile(f, "1")
	ot.refused(f)
	ot.operator.Kill()
	ot.start(ot.account)
	ot.reconcile(f, "2")
	ot.refused(f)
	ot.delete(f)
	ot.want("not ours", "drwx------ orders", "-rw------- orders/precious")
}
