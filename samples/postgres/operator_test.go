package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/pgserver"
	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/operator/operatortest"
	"github.com/trimtab-dev/trimtab/samples/postgres"
	"github.com/trimtab-dev/trimtab/samples/postgres/api/v1alpha1"
	"github.com/trimtab-dev/trimtab/testenv"
)

// object is one of the kinds of the operator.
type object interface {
	client.Object
	api.ExternalObject
}

// rig is the operator between a real API server and a real PostgreSQL server. It may do no more than its manifests say.
type rig struct {
	t         *testing.T
	pg        *pgserver.Server
	admin     client.WithWatch
	namespace string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	pg := pgserver.Start(t)
	op := operatortest.Run(t, postgres.Operator(), "--drift-interval=10h")
	return &rig{t: t, pg: pg, admin: op.Client, namespace: op.Namespace}
}

func (r *rig) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: r.namespace, Name: name}
}

func (r *rig) create(all ...client.Object) {
	r.t.Helper()
	for _, obj := range all {
		if err := r.admin.Create(r.t.Context(), obj); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *rig) delete(obj client.Object) {
	r.t.Helper()
	if err := r.admin.Delete(r.t.Context(), obj); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) patch(obj client.Object, body string) {
	r.t.Helper()
	if err := r.admin.Patch(r.t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) poke(obj client.Object, token string) {
	r.t.Helper()
	r.patch(obj, fmt.Sprintf(`{"metadata":{"annotations":{"trimtab.dev/reconcile":%q}}}`, token))
}

// ready waits until an object is Ready for its present spec.
func ready[T object](r *rig, obj T) {
	r.t.Helper()
	testenv.Wait(r.t, r.admin, obj, "Ready", func(o T) bool {
		c := apimeta.FindStatusCondition(o.TrimtabStatus().Conditions, api.ConditionReady)
		return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == o.GetGeneration()
	})
}

// says waits for a part of the message of an object.
func says[T object](r *rig, obj T, message string) {
	r.t.Helper()
	testenv.Wait(r.t, r.admin, obj, message, func(o T) bool { return strings.Contains(o.TrimtabStatus().Message, message) })
}

// login logs in as the Secret says.
func (r *rig) login(database string) error {
	r.t.Helper()
	var s corev1.Secret
	if err := r.admin.Get(r.t.Context(), types.NamespacedName{Namespace: r.namespace, Name: "clerk-login"}, &s); err != nil {
		return err
	}
	c, err := pgx.Connect(r.t.Context(), fmt.Sprintf("host=%s port=%s user=%s password=%s dbname=%s sslmode=disable",
		s.Data["host"], s.Data["port"], s.Data["username"], s.Data["password"], database))
	if err != nil {
		return err
	}
	return c.Close(r.t.Context())
}

func TestOperator(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	login := &corev1.Secret{ObjectMeta: r.meta("main"), StringData: map[string]string{"password": pgserver.Password}}
	server := serverOf(t, r.pg)
	server.ObjectMeta = r.meta("main")
	clerk := &v1alpha1.Role{ObjectMeta: r.meta("clerk"), Spec: v1alpha1.RoleSpec{Server: "main", Connection: api.SecretReference{Name: "clerk-login"}}}
	keeper := &v1alpha1.Role{ObjectMeta: r.meta("keeper"), Spec: v1alpha1.RoleSpec{Server: "main", Name: "shop_keeper"}}
	shop := &v1alpha1.Database{ObjectMeta: r.meta("shop"), Spec: v1alpha1.DatabaseSpec{Server: "main", Owner: "keeper", ConnectionLimit: new(int32(9))}}
	grant := &v1alpha1.Grant{ObjectMeta: r.meta("clerk-shop"), Spec: v1alpha1.GrantSpec{
		Server: "main", Role: "clerk", Database: "shop", Privileges: []v1alpha1.Privilege{"CONNECT", "TEMPORARY"},
	}}
	r.create(clerk, grant, shop) // before what they need
	says(r, clerk, "Server "+r.namespace+"/main does not exist")
	r.create(server)
	says(r, clerk, "Secret "+r.namespace+"/main does not exist")
	r.create(login)
	ready(r, clerk)
	says(r, shop, "Role "+r.namespace+"/keeper: it does not exist")
	says(r, grant, "Database "+r.namespace+"/shop: it is not ready")
	r.create(keeper)
	ready(r, clerk)
	ready(r, keeper)
	ready(r, shop)
	ready(r, grant)
	owner := `SELECT pg_get_userbyid(datdba) || ' ' || datconnlimit FROM pg_database WHERE datname = 'shop'`
	if got := r.pg.Value(owner); got != "shop_keeper 9" {
		t.Errorf("owner and limit %q", got)
	}
	if err := r.login("shop"); err != nil {
		t.Error(err)
	}

	t.Run("what somebody changes is corrected", func(t *testing.T) {
		r.pg.Exec(`ALTER DATABASE shop CONNECTION LIMIT 1`, `ALTER DATABASE shop OWNER TO postgres`, `REVOKE TEMPORARY ON DATABASE shop FROM clerk`)
		r.poke(shop, "1")
		r.poke(grant, "1")
		if !poll.Until(func() bool {
			return r.pg.Value(owner) == "shop_keeper 9" && r.pg.Value(`SELECT has_database_privilege('clerk', 'shop', 'TEMPORARY')::text`) == "true"
		}) {
			t.Errorf("owner and limit %q", r.pg.Value(owner))
		}
	})
	t.Run("a password is replaced", func(t *testing.T) {
		secret := &corev1.Secret{ObjectMeta: r.meta("clerk-login")}
		stored := `SELECT rolpassword FROM pg_authid WHERE rolname = 'clerk'`
		before := r.pg.Value(stored)
		if !strings.HasPrefix(before, "SCRAM-SHA-256$") {
			t.Errorf("stored as %q", before)
		}
		r.patch(secret, `{"data":{"password":null}}`)
		if !poll.Until(func() bool { return r.pg.Value(stored) != before && r.login("shop") == nil }) {
			t.Errorf("the role has no new password, or the Secret has another one: %v", r.login("shop"))
		}
		ready(r, clerk)
	})
	t.Run("without PostgreSQL", func(t *testing.T) {
		r.pg.Stop()
		r.poke(shop, "2")
		testenv.Wait(t, r.admin, shop, "Failed", func(o *v1alpha1.Database) bool {
			return apimeta.IsStatusConditionTrue(o.Status.Conditions, api.ConditionFailed)
		})
		r.pg.Resume()
		testenv.Wait(t, r.admin, shop, "no failure", func(o *v1alpha1.Database) bool {
			return apimeta.IsStatusConditionFalse(o.Status.Conditions, api.ConditionFailed)
		})
		ready(r, shop)
	})
	t.Run("a deletion that PostgreSQL refuses", func(t *testing.T) {
		r.delete(keeper)
		says(r, keeper, "owner of database shop")
		r.delete(server) // which stays for those that name it
		c := r.pg.Connect("shop")
		r.delete(shop)
		says(r, shop, "There is 1 other session using the database")
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		testenv.Gone(t, r.admin, shop, "the database")
		testenv.Gone(t, r.admin, keeper, "its owner")
		r.delete(grant)
		r.delete(clerk)
		testenv.Gone(t, r.admin, grant, "the grant")
		testenv.Gone(t, r.admin, clerk, "the role")
		testenv.Gone(t, r.admin, server, "the server")
		if left := r.pg.Value(`SELECT (SELECT count(*) FROM pg_database WHERE datname = 'shop') + (SELECT count(*) FROM pg_roles WHERE rolname IN ('clerk', 'shop_keeper')) || ''`); left != "0" {
			t.Errorf("%s are left", left)
		}
	})
}
