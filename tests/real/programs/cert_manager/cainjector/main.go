// cert-manager's CA injector, with the configuration file that is given: the module has its controllers and the
// defaults of its configuration, but not the main package.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetes "k8s.io/client-go/kubernetes/scheme"
	aggregated "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	config "github.com/cert-manager/cert-manager/internal/apis/config/cainjector"
	"github.com/cert-manager/cert-manager/internal/kube"
	"github.com/cert-manager/cert-manager/pkg/cainjector/configfile"
	certmanager "github.com/cert-manager/cert-manager/pkg/client/clientset/versioned/scheme"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	logf "github.com/cert-manager/cert-manager/pkg/logs"
	"github.com/cert-manager/cert-manager/pkg/util"
	loader "github.com/cert-manager/cert-manager/pkg/util/configfile"
	"github.com/cert-manager/cert-manager/pkg/util/feature"
)

func main() {
	file := configfile.New()
	from, err := loader.NewConfigurationFSLoader(nil, os.Args[1])
	if err == nil {
		err = from.Load(file)
	}
	if err != nil {
		log.Fatal(err)
	}
	logf.InitLogs()
	if err := logf.ValidateAndApply(&file.Config.Logging); err != nil {
		log.Fatal(err)
	}
	if err := feature.DefaultMutableFeatureGate.SetFromMap(file.Config.FeatureGates); err != nil {
		log.Fatal(err)
	}
	ctrl.SetLogger(logf.Log)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(logf.NewContext(ctx, logf.Log, "cainjector"), file.Config); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, options *config.CAInjectorConfiguration) error {
	rest, err := kube.BuildClientConfig("", options.KubeConfig)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		kubernetes.AddToScheme, certmanager.AddToScheme, extensions.AddToScheme, aggregated.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	election := options.LeaderElectionConfig
	// Secrets are watched by their metadata alone, and read one by one.
	uncached := client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}}
	manager, err := ctrl.NewManager(util.RestConfigWithUserAgent(rest, "cainjector"), ctrl.Options{
		Scheme:                        scheme,
		Cache:                         cache.Options{ReaderFailOnMissingInformer: true},
		Client:                        uncached,
		LeaderElection:                election.Enabled,
		LeaderElectionNamespace:       election.Namespace,
		LeaderElectionID:              "cert-manager-cainjector-leader-election",
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &election.LeaseDuration,
		RenewDeadline:                 &election.RenewDeadline,
		RetryPeriod:                   &election.RetryPeriod,
		Metrics:                       metrics.Options{BindAddress: options.MetricsListenAddress},
	})
	if err != nil {
		return err
	}
	injectable := options.EnableInjectableConfig
	err = cainjector.RegisterAllInjectors(ctx, manager, cainjector.SetupOptions{
		Namespace:                    options.Namespace,
		EnableCertificatesDataSource: options.EnableDataSourceConfig.Certificates,
		EnabledReconcilersFor: map[string]bool{
			cainjector.MutatingWebhookConfigurationName:   injectable.MutatingWebhookConfigurations,
			cainjector.ValidatingWebhookConfigurationName: injectable.ValidatingWebhookConfigurations,
			cainjector.APIServiceName:                     injectable.APIServices,
			cainjector.CustomResourceDefinitionName:       injectable.CustomResourceDefinitions,
		},
	})
	if err != nil {
		return err
	}
	return manager.Start(ctx)
}
