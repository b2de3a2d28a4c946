// Command leases is a Kubernetes API server for tests: the generic server of
// k8s.io/apiserver with the Lease registry and the role-based access control of
// k8s.io/kubernetes, and nothing else. It serves coordination.k8s.io/v1 over
// TLS, out of an etcd that runs elsewhere.
//
// After a change of this file, remove .cache/bin/leases-*.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/union"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/coordination"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	"k8s.io/kubernetes/pkg/registry/coordination/lease"
	"k8s.io/kubernetes/pkg/registry/rbac/validation"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"
	"sigs.k8s.io/yaml"
)

type settings struct {
	etcd, certs, admin, user, role string
	port                           int
}

func main() {
	var s settings
	flag.StringVar(&s.etcd, "etcd", "", "URL of the etcd")
	flag.IntVar(&s.port, "port", 0, "port on 127.0.0.1")
	flag.StringVar(&s.certs, "certs", "", "folder of apiserver.crt and apiserver.key, which are made if missing")
	flag.StringVar(&s.admin, "admin", "", "token of who may do everything")
	flag.StringVar(&s.user, "user", "", "token of who may do what -role says")
	flag.StringVar(&s.role, "role", "", "file with a Role of the namespace that it names")
	flag.Parse()
	if err := serve(context.Background(), s); err != nil {
		fmt.Fprintln(os.Stderr, "leases:", err)
		os.Exit(1)
	}
}

// serve serves until ctx ends.
func serve(ctx context.Context, s settings) error {
	scheme, codecs := legacyscheme.Scheme, legacyscheme.Codecs
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	config := server.NewConfig(codecs)
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	config.OpenAPIV3Config = server.DefaultOpenAPIV3Config(definitions, openapinamer.NewDefinitionNamer(scheme))
	config.SkipOpenAPIInstallation = true

	secure := options.NewSecureServingOptions().WithLoopback()
	secure.BindAddress, secure.BindPort = net.IPv4(127, 0, 0, 1), s.port
	secure.ServerCert.CertDirectory, secure.ServerCert.PairName = s.certs, "apiserver"
	if err := secure.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{secure.BindAddress}); err != nil {
		return err
	}
	if err := secure.ApplyTo(&config.SecureServing, &config.LoopbackClientConfig); err != nil {
		return err
	}
	config.ExternalAddress = net.JoinHostPort("127.0.0.1", fmt.Sprint(s.port))
	if err := s.access(config); err != nil {
		return err
	}

	storage := options.NewEtcdOptions(storagebackend.NewDefaultConfig("/registry", codecs.LegacyCodec(coordinationv1.SchemeGroupVersion)))
	storage.StorageConfig.Transport.ServerList = []string{s.etcd}
	if err := storage.ApplyTo(config); err != nil {
		return err
	}
	api, err := config.Complete(nil).New("leases", server.NewEmptyDelegate())
	if err != nil {
		return err
	}
	leases := storageOf()
	if err := leases.CompleteWithOptions(&generic.StoreOptions{RESTOptions: config.RESTOptionsGetter}); err != nil {
		return err
	}
	group := server.NewDefaultAPIGroupInfo(coordinationv1.GroupName, scheme, metav1.ParameterCodec, codecs)
	group.VersionedResourcesStorageMap["v1"] = map[string]rest.Storage{"leases": leases}
	if err := api.InstallAPIGroup(&group); err != nil {
		return err
	}
	return api.PrepareRun().RunWithContext(ctx)
}

// storageOf is the Lease registry but for the tables that it prints for people,
// which would bring the types of all of Kubernetes along.
func storageOf() *registry.Store {
	resource := coordination.Resource("leases")
	return &registry.Store{
		NewFunc:                   func() runtime.Object { return &coordination.Lease{} },
		NewListFunc:               func() runtime.Object { return &coordination.LeaseList{} },
		DefaultQualifiedResource:  resource,
		SingularQualifiedResource: coordination.Resource("lease"),
		CreateStrategy:            lease.Strategy,
		UpdateStrategy:            lease.Strategy,
		DeleteStrategy:            lease.Strategy,
		TableConvertor:            rest.NewDefaultTableConvertor(resource),
	}
}

// definitions say no more of a Lease than its server needs to note who wrote
// which field: the real ones describe all of Kubernetes.
func definitions(common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	object := spec.Schema{
		SchemaProps:      spec.SchemaProps{Type: spec.StringOrArray{"object"}},
		VendorExtensible: spec.VendorExtensible{Extensions: spec.Extensions{"x-kubernetes-preserve-unknown-fields": true}},
	}
	return map[string]common.OpenAPIDefinition{coordinationv1.Lease{}.OpenAPIModelName(): {Schema: object}}
}

// access says who may do what.
func (s settings) access(config *server.Config) error {
	config.Authentication.Authenticator = bearertoken.New(tokenfile.New(map[string]*user.DefaultInfo{
		s.admin: {Name: "admin", Groups: []string{user.SystemPrivilegedGroup}},
		s.user:  {Name: "user"},
	}))
	var role rbacv1.Role
	if s.role != "" {
		text, err := os.ReadFile(s.role)
		if err != nil {
			return err
		}
		if err := yaml.UnmarshalStrict(text, &role); err != nil {
			return err
		}
	}
	_, roles := validation.NewTestRuleResolver([]*rbacv1.Role{&role}, []*rbacv1.RoleBinding{{
		ObjectMeta: metav1.ObjectMeta{Namespace: role.Namespace, Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "user"}},
	}}, nil, nil)
	var err error
	config.Authorization.Authorizer, err = union.New(
		union.NamedAuthorizer{AuthorizerName: "privileged", Authorizer: authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup)},
		union.NamedAuthorizer{AuthorizerName: "roles", Authorizer: rbac.New(roles, roles, roles, roles)},
	)
	return err
}
