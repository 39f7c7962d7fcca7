package postgres_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/external/externaltest"
	"github.com/trimtab-dev/trimtab/internal/pgserver"
	"github.com/trimtab-dev/trimtab/samples/postgres"
	"github.com/trimtab-dev/trimtab/samples/postgres/api/v1alpha1"
)

// serverOf is the Server object of a server, with its password loaded.
func serverOf(t *testing.T, s *pgserver.Server) *v1alpha1.Server {
	t.Helper()
	o := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "main"}, Spec: v1alpha1.ServerSpec{
		Host: "127.0.0.1", Port: int32(s.Port), Database: "postgres", Username: "postgres", SSLMode: "disable",
		Password: api.SecretKeyReference{Name: "main", Key: "password"},
	}}
	if _, err := o.Spec.Password.Load(map[string][]byte{"password": []byte(pgserver.Password)}); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestConformance(t *testing.T) {
	t.Parallel()
	s := pgserver.Start(t)
	c, err := postgres.Connect(t.Context(), serverOf(t, s))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	t.Run("databases", func(t *testing.T) {
		externaltest.Run(t, postgres.Databases{}, externaltest.Fixture[*v1alpha1.Database, *postgres.Client]{
			Client: c, Options: external.Options[*v1alpha1.Database, *postgres.Client]{MarkLater: true, UniqueNames: true},
			New: func(string) *v1alpha1.Database {
				return &v1alpha1.Database{Spec: v1alpha1.DatabaseSpec{Encoding: "UTF8", ConnectionLimit: new(int32(5))}}
			},
			Changes: map[string]func(*v1alpha1.Database){"limit": func(d *v1alpha1.Database) { d.Spec.ConnectionLimit = new(int32(7)) }},
		})
	})
	t.Run("roles", func(t *testing.T) {
		externaltest.Run(t, postgres.Roles{}, externaltest.Fixture[*v1alpha1.Role, *postgres.Client]{
			Client: c, Options: external.Options[*v1alpha1.Role, *postgres.Client]{UniqueNames: true},
			New: func(name string) *v1alpha1.Role {
				return &v1alpha1.Role{Spec: v1alpha1.RoleSpec{Name: "role \"" + name + "'", CreateDB: new(true), Connection: api.SecretReference{Name: name}}}
			},
			Changes: map[string]func(*v1alpha1.Role){
				"createDB": func(r *v1alpha1.Role) { r.Spec.CreateDB = new(false) },
				"limit":    func(r *v1alpha1.Role) { r.Spec.ConnectionLimit = new(int32(3)) },
			},
		})
	})
	t.Run("grants", func(t *testing.T) {
		s.Exec(`CREATE ROLE reader`, `CREATE DATABASE a`, `CREATE DATABASE b`)
		externaltest.Run(t, postgres.Grants{}, externaltest.Fixture[*v1alpha1.Grant, *postgres.Client]{
			Client: c, Options: external.Options[*v1alpha1.Grant, *postgres.Client]{Unmarked: true, UniqueNames: true},
			New: func(name string) *v1alpha1.Grant {
				return &v1alpha1.Grant{Spec: v1alpha1.GrantSpec{Role: "reader", Database: name, Privileges: []v1alpha1.Privilege{"CONNECT"}}}
			},
			Changes: map[string]func(*v1alpha1.Grant){"privileges": func(g *v1alpha1.Grant) { g.Spec.Privileges = []v1alpha1.Privilege{"TEMPORARY", "CONNECT"} }},
		})
	})
}
