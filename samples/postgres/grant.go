package postgres

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/samples/postgres/api/v1alpha1"
)

// Grants is the driver of what roles may do with databases.
type Grants struct{}

// LiveGrant is what a role may do with a database.
type LiveGrant struct {
	Role, Database string
	Privileges     []v1alpha1.Privilege
}

// The compiler checks that the driver has the methods that it is meant to have.
var (
	_ external.Driver[*v1alpha1.Grant, *Client, LiveGrant]  = Grants{}
	_ external.Updater[*v1alpha1.Grant, *Client, LiveGrant] = Grants{}
	_ external.Reflector[*v1alpha1.Grant, LiveGrant]        = Grants{}
	_ external.Namer[*v1alpha1.Grant]                       = Grants{}
	_ external.Dependent[*v1alpha1.Grant]                   = Grants{}
	_ external.Classifier                                   = Grants{}
)

// ExternalName implements [external.Namer]. Two objects cannot grant something to the same role in the same database.
func (Grants) ExternalName(g *v1alpha1.Grant) (string, error) {
	return fmt.Sprintf("%s/%s in %s", g.Namespace, g.Spec.Role, g.Spec.Database), nil
}

// DependsOn implements [external.Dependent].
func (Grants) DependsOn(g *v1alpha1.Grant) []external.Dependency {
	return []external.Dependency{
		{Role: "role", To: &v1alpha1.Role{}, Name: g.Spec.Role},
		{Role: "database", To: &v1alpha1.Database{}, Name: g.Spec.Database},
	}
}

// Classify implements [external.Classifier].
func (Grants) Classify(err error) external.Class { return classify(err) }

// of returns the role and the database of a grant by their names on the server. If their objects are gone, they are those of
// the status.
func of(g *v1alpha1.Grant, needs map[string]client.Object) LiveGrant {
	on := LiveGrant{Role: cmp.Or(g.Status.Role, g.Spec.Role), Database: cmp.Or(g.Status.Database, g.Spec.Database)}
	if role, is := needs["role"].(*v1alpha1.Role); is {
		on.Role = role.SQLName()
	}
	if database, is := needs["database"].(*v1alpha1.Database); is {
		on.Database = database.SQLName()
	}
	return on
}

// Observe implements [external.Driver]. What everybody may do, as PostgreSQL lets them connect, is not granted to the role.
func (Grants) Observe(ctx context.Context, r external.ObserveRequest[*v1alpha1.Grant, *Client]) (external.Observation[LiveGrant], error) {
	have := of(r.Object, r.Dependencies)
	var all string
	found, err := r.Client.query(ctx, `SELECT string_agg(a.privilege_type, ',' ORDER BY a.privilege_type)
		FROM pg_database d, aclexplode(d.datacl) a, pg_roles r
		WHERE d.datname = $1 AND r.rolname = $2 AND a.grantee = r.oid HAVING count(*) > 0`, []any{have.Database, have.Role}, &all)
	if err != nil || !found {
		return external.Missing[LiveGrant](), err
	}
	for p := range strings.SplitSeq(all, ",") {
		have.Privileges = append(have.Privileges, v1alpha1.Privilege(p))
	}
	return external.Available(have, nil), nil
}

// Compare implements [external.Driver].
func (Grants) Compare(r external.CompareRequest[*v1alpha1.Grant, LiveGrant]) external.Changes {
	return external.Set("spec.privileges", r.Object.Spec.Privileges, r.Have.Privileges)
}

func (g LiveGrant) grant(privileges []v1alpha1.Privilege) string {
	all := make([]string, len(privileges))
	for i, p := range privileges {
		all[i] = string(p)
	}
	return fmt.Sprintf("GRANT %s ON DATABASE %s TO %s", strings.Join(all, ", "), name(g.Database), name(g.Role))
}

func (g LiveGrant) revoke() string {
	return fmt.Sprintf("REVOKE ALL ON DATABASE %s FROM %s", name(g.Database), name(g.Role))
}

// Create implements [external.Driver].
func (Grants) Create(ctx context.Context, r external.CreateRequest[*v1alpha1.Grant, *Client]) (external.CreateResponse[LiveGrant], error) {
	return external.CreateResponse[LiveGrant]{}, r.Client.exec(ctx, of(r.Object, r.Dependencies).grant(r.Object.Spec.Privileges))
}

// Update implements [external.Updater].
func (Grants) Update(ctx context.Context, r external.UpdateRequest[*v1alpha1.Grant, *Client, LiveGrant]) (external.UpdateResponse[LiveGrant], error) {
	return external.UpdateResponse[LiveGrant]{}, r.Client.transact(ctx, r.Have.revoke(), r.Have.grant(r.Object.Spec.Privileges))
}

// Delete implements [external.Driver].
func (d Grants) Delete(ctx context.Context, r external.DeleteRequest[*v1alpha1.Grant, *Client]) (external.DeleteResponse, error) {
	seen, err := d.Observe(ctx, external.ObserveRequest[*v1alpha1.Grant, *Client](r))
	if err != nil || seen.Phase == external.PhaseMissing { // its role or its database may be gone
		return external.DeleteResponse{}, err
	}
	return external.DeleteResponse{}, r.Client.exec(ctx, seen.Have.revoke())
}

// Reflect implements [external.Reflector].
func (Grants) Reflect(r external.ReflectRequest[*v1alpha1.Grant, LiveGrant]) {
	r.Object.Status.Role, r.Object.Status.Database = r.Have.Role, r.Have.Database
}
