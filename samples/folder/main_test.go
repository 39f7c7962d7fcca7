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

// world is a namespace on a real API server, a disk, and the operator's process between them.
type world struct {
	t         *testing.T
	cfg       *rest.Config
	client    client.WithWatch
	namespace string
	disk      string
	flags     []string // of the operator
	account   operatortest.Account
	operator  *operatortest.Process
}

func newWorld(t *testing.T, flags ...string) *world {
	t.Helper()
	cfg := testenv.Start(t)
	w := &world{t: t, cfg: cfg, client: testenv.Client(t, cfg, v1.AddToScheme), namespace: testenv.Namespace(t, cfg), disk: t.TempDir()}
	w.flags = append([]string{"--watch-namespaces", w.namespace}, flags...)
	w.account = operatortest.Self(asOperator).Install(t, cfg, w.namespace, w.flags...)
	return w
}

// start runs the operator, as an account whose requests may take a way around.
func (w *world) start(a operatortest.Account) {
	w.t.Helper()
	// Without the lease nobody has to wait for that of a killed process to end.
	w.operator = operatortest.Self(asOperator).Start(w.t, a, append([]string{"--root", w.disk, "--leader-elect=false"}, w.flags...)...)
}

// create makes the object "orders".
func (w *world) create(spec v1.FolderSpec) *v1.Folder {
	w.t.Helper()
	f := &v1.Folder{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "orders"}, Spec: spec}
	w.do(w.client.Create(w.t.Context(), f))
	return f
}

func (w *world) merge(f *v1.Folder, body string) {
	w.t.Helper()
	w.do(w.client.Patch(w.t.Context(), f, client.RawPatch(types.MergePatchType, []byte(body))))
}

// ready waits until the object is Ready as it is asked for now.
func (w *world) ready(f *v1.Folder) *v1.Folder {
	w.t.Helper()
	generation := f.Generation
	return testenv.Wait(w.t, w.client, f, "the folder to be Ready", func(f *v1.Folder) bool {
		return f.Status.AppliedGeneration == generation && meta.IsStatusConditionTrue(f.Status.Conditions, api.ConditionReady)
	})
}

// look has the operator compare now what it would within ten minutes, and waits until it did.
func (w *world) look(f *v1.Folder, token string) *v1.Folder {
	w.t.Helper()
	w.merge(f, `{"metadata":{"annotations":{"`+api.AnnotationReconcile+`":"`+token+`"}}}`)
	return testenv.Wait(w.t, w.client, f, "the operator to have looked", func(f *v1.Folder) bool { return f.Status.HandledReconcile == token })
}

// refused waits until the object says why it has no folder.
func (w *world) refused(f *v1.Folder) {
	w.t.Helper()
	want := `folder "orders" exists, and nothing shows that it belongs to this object; whoever runs the operator can allow annotation trimtab.dev/adoption=always, which adopts it, with --adoption-limit ` + w.namespace + "=always"
	if slices.Contains(w.flags, "always") {
		want = `folder "orders" exists, and nothing shows that it belongs to this object; set annotation trimtab.dev/adoption to "always" to adopt it`
	}
	f = testenv.Wait(w.t, w.client, f, "the object to be refused", func(f *v1.Folder) bool { return f.Status.State == "Failed" })
	c := meta.FindStatusCondition(f.Status.Conditions, api.ConditionReady)
	if c == nil || c.Reason != "NotOurs" || c.Message != want || f.Status.Message != want {
		w.t.Errorf("Ready is %+v, the message %q; want NotOurs with %q", c, f.Status.Message, want)
	}
}

func (w *world) delete(f *v1.Folder) {
	w.t.Helper()
	w.do(w.client.Delete(w.t.Context(), f))
	testenv.Gone(w.t, w.client, f, "the object to be gone")
}

// occupy makes a folder with a file in it that the operator knows nothing of.
func (w *world) occupy() {
	w.t.Helper()
	w.do(os.Mkdir(filepath.Join(w.disk, "orders"), 0o700))
	w.do(os.WriteFile(filepath.Join(w.disk, "orders", "precious"), nil, 0o600))
}

// want compares what is on disk: a line for each entry.
func (w *world) want(why string, lines ...string) {
	w.t.Helper()
	var got []string
	err := filepath.Walk(w.disk, func(path string, info os.FileInfo, err error) error {
		if err == nil && path != w.disk {
			got = append(got, info.Mode().String()+" "+strings.TrimPrefix(path, w.disk+"/"))
		}
		return err
	})
	w.do(err)
	if diff := cmp.Diff(lines, got); diff != "" {
		w.t.Errorf("%s: on disk (-want +got):\n%s", why, diff)
	}
}

func (w *world) do(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestLife(t *testing.T) {
	w := newWorld(t)
	w.start(w.account)
	path := filepath.Join(w.disk, "orders")

	f := w.ready(w.create(v1.FolderSpec{}))
	w.want("created", "drwxr-xr-x orders")
	w.merge(f, `{"spec":{"readOnly":true}}`)
	f = w.ready(f)
	w.want("made read-only", "dr-xr-xr-x orders")

	w.do(os.Chmod(path, 0o777))
	f = w.look(f, "1")
	w.want("the mode was changed behind the operator's back", "dr-xr-xr-x orders")
	w.do(os.Remove(path))
	f = w.ready(w.look(f, "2"))
	w.want("removed behind the operator's back", "dr-xr-xr-x orders")
	if f.Status.External == nil || f.Status.External.Incarnation != 2 {
		t.Errorf("external status %+v; want the second incarnation", f.Status.External)
	}

	w.delete(f)
	w.want("deleted")
	w.operator.Stop()
}

// A folder that was there before is not ours: not after a restart of the operator either,
// and not when the object goes.
func TestFolderOfOthers(t *testing.T) {
	w := newWorld(t)
	w.occupy()
	untouched := []string{"drwx------ orders", "-rw------- orders/precious"}
	w.start(w.account)
	f := w.create(v1.FolderSpec{})
	w.refused(f)
	w.operator.Kill()
	w.start(w.account)
	w.look(f, "after a restart")
	w.refused(f)
	w.want("not ours", untouched...)
	w.delete(f)
	w.want("not ours, and the object is deleted", untouched...)
}

func TestAdoption(t *testing.T) {
	w := newWorld(t, "--adoption-limit", "always")
	w.occupy()
	w.start(w.account)
	f := w.create(v1.FolderSpec{ReadOnly: true})
	w.refused(f)
	w.merge(f, `{"metadata":{"annotations":{"`+api.AnnotationAdoption+`":"always"}}}`)
	f = w.ready(f)
	w.want("taken over", "dr-xr-xr-x orders", "-rw------- orders/precious")
	w.delete(f)
	w.want("what was taken over is ours to delete")
}

// The folder that a killed operator made is found again, because its record was durable
// before.
func TestKilledAfterMkdir(t *testing.T) {
	w := newWorld(t)
	// The first write after the folder is made is that of the status.
	g := w.gate(func(path string, _ int) bool { return strings.HasSuffix(path, "/status") })
	w.start(g.Account)
	f := w.create(v1.FolderSpec{})
	g.await(t)
	w.operator.Kill()
	w.want("killed after Mkdir", "drwxr-xr-x orders")

	w.start(w.account)
	f = w.ready(f)
	w.want("started again", "drwxr-xr-x orders")
	if f.Status.External.Incarnation != 1 {
		t.Errorf("external status %+v; want the first incarnation", f.Status.External)
	}
	w.delete(f)
	w.want("deleted")
}

// A folder that somebody makes after the operator looked and before it calls Mkdir is not
// ours either.
func TestFolderAppearsBeforeMkdir(t *testing.T) {
	w := newWorld(t)
	const record = 2 // the first write is the finalizer
	g := w.gate(func(_ string, number int) bool { return number == record })
	w.start(g.Account)
	f := w.create(v1.FolderSpec{})
	g.await(t)
	w.occupy()
	close(g.open)
	testenv.Wait(t, w.client, f, "Mkdir to be refused", func(f *v1.Folder) bool { return f.Status.State == "Failed" })
	w.look(f, "1")
	w.refused(f)
	w.operator.Kill()
	w.start(w.account)
	w.look(f, "2")
	w.refused(f)
	w.delete(f)
	w.want("not ours", "drwx------ orders", "-rw------- orders/precious")
}
