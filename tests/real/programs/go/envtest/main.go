// An envtest suite of an operator, as a program: it starts what KUBEBUILDER_ASSETS names, runs a controller-runtime
// manager on it and checks what came of it.
package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"konverge.invalid/real/steps"
)

const namespace = "default"

func main() {
	log.SetLogger(zap.New())
	ctx, cancel := context.WithTimeout(context.Background(), steps.Limit)
	defer cancel()
	begun := time.Now()
	environment := &envtest.Environment{
		CRDInstallOptions:     envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{definition()}},
		WebhookInstallOptions: webhooks(),
	}
	steps.Leave = func() { _ = environment.Stop() }
	config := steps.Got(environment.Start())
	fmt.Printf("started in %d ms\n", time.Since(begun).Milliseconds())
	steps.Done("start")

	addToScheme(scheme.Scheme)
	running, stop := context.WithCancel(ctx)
	ended := startManager(running, config, &environment.WebhookInstallOptions)
	direct := steps.Got(client.New(config, client.Options{}))
	operate(ctx, direct)
	verbs(ctx, direct)
	users(ctx, environment, direct)
	stop()
	steps.Must(<-ended, "the manager")
	steps.Done("manager")

	steps.Must(environment.Stop(), "stop")
	steps.Done("stop")
	fmt.Printf("finished in %d ms\n", time.Since(begun).Milliseconds())
}

func startManager(ctx context.Context, config *rest.Config, hooks *envtest.WebhookInstallOptions) <-chan error {
	manager := steps.Got(ctrl.NewManager(config, ctrl.Options{
		Metrics:          metricsserver.Options{BindAddress: "0"},
		LeaderElection:   true,
		LeaderElectionID: "greeter", LeaderElectionNamespace: namespace, LeaderElectionReleaseOnCancel: true,
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: hooks.LocalServingHost, Port: hooks.LocalServingPort, CertDir: hooks.LocalServingCertDir,
		}),
	}))
	steps.Must(ctrl.NewControllerManagedBy(manager).For(&Greeting{}).Owns(&corev1.ConfigMap{}).
		Complete(&reconciler{manager.GetClient()}), "controller")
	serveWebhooks(manager)
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	return ended
}

// operate is what the operator's tests would do.
func operate(ctx context.Context, direct client.Client) {
	greeting := &Greeting{ObjectMeta: metav1.ObjectMeta{Name: "hello", Namespace: namespace}, Spec: GreetingSpec{" Hello "}}
	steps.UntilNil(ctx, "the webhooks", func() error { return direct.Create(ctx, greeting) })
	steps.Check(greeting.Spec.Text == "Hello", "mutated: %q", greeting.Spec.Text)
	key := client.ObjectKeyFromObject(greeting)
	said := func(text string) func() bool {
		return func() bool {
			steps.Must(direct.Get(ctx, key, greeting), "get")
			return greeting.Status.Said == text && greeting.Status.ObservedGeneration == greeting.Generation
		}
	}
	steps.Until(ctx, "the first greeting", said("Hello"))
	changed := greeting.DeepCopyObject().(*Greeting)
	changed.Spec.Text = "Good day"
	steps.Must(direct.Patch(ctx, changed, client.MergeFrom(greeting)), "patch")
	steps.Until(ctx, "the second greeting", said("Good day"))
	var made corev1.ConfigMap
	steps.Must(direct.Get(ctx, key, &made), "get")
	steps.Check(made.Data["text"] == "Good day" && metav1.IsControlledBy(&made, greeting), "owned: %v", made)
	steps.Done("reconcile")

	steps.Must(direct.Delete(ctx, &made, client.Preconditions{UID: &made.UID}), "delete")
	steps.Until(ctx, "the repair", func() bool {
		var again corev1.ConfigMap
		return direct.Get(ctx, key, &again) == nil && again.UID != made.UID
	})
	steps.Done("repair")

	steps.Must(direct.Delete(ctx, greeting), "delete")
	steps.Until(ctx, "the end", func() bool { return errors.IsNotFound(direct.Get(ctx, key, greeting)) })
	steps.Done("finalizer")

	invalid := &Greeting{ObjectMeta: metav1.ObjectMeta{Name: "silent", Namespace: namespace}}
	err := direct.Create(ctx, invalid)
	steps.Check(errors.IsInvalid(err), "an empty text is invalid: %v", err)
	invalid.Spec.Text = "Hey!"
	err = direct.Create(ctx, invalid)
	steps.Check(errors.IsForbidden(err) && strings.Contains(err.Error(), "\"Hey!\" is shouted"), "shouting: %v", err)
	steps.Done("validation")
}

// verbs is what controller-runtime's client can do, on built-in kinds: their bodies are protobuf.
func verbs(ctx context.Context, direct client.Client) {
	web := deployment()
	steps.Must(direct.Create(ctx, web, client.FieldOwner("author")), "create")
	steps.Check(*web.Spec.Replicas == 1 && web.Spec.Strategy.RollingUpdate != nil, "defaults: %v", web.Spec)
	stale := web.DeepCopy()
	web.Labels = map[string]string{"tier": "front"}
	steps.Must(direct.Update(ctx, web), "update")
	stale.Labels = map[string]string{"tier": "back"}
	err := direct.Update(ctx, stale)
	steps.Check(errors.IsConflict(err), "a stale update is a conflict: %v", err)
	steps.Done("update")

	scale := &autoscalingv1.Scale{}
	steps.Must(direct.SubResource("scale").Get(ctx, web, scale), "scale")
	scale.Spec.Replicas = 4
	steps.Must(direct.SubResource("scale").Update(ctx, web, client.WithSubResourceBody(scale)), "scale")
	steps.Must(direct.Get(ctx, client.ObjectKeyFromObject(web), web), "get")
	steps.Check(*web.Spec.Replicas == 4, "scaled: %v", web.Spec.Replicas)
	steps.Done("scale")

	web.Status.Replicas = 4
	steps.Must(direct.Status().Update(ctx, web), "status")
	strategic := web.DeepCopy()
	strategic.Spec.Template.Spec.Containers[0].Image = "nginx:2"
	steps.Must(direct.Patch(ctx, strategic, client.StrategicMergeFrom(web), client.DryRunAll), "dry run")
	steps.Check(strategic.Spec.Template.Spec.Containers[0].Image == "nginx:2", "patched: %v", strategic.Spec.Template)
	steps.Must(direct.Get(ctx, client.ObjectKeyFromObject(web), web), "get")
	steps.Check(web.Spec.Template.Spec.Containers[0].Image == "nginx" && web.Status.Replicas == 4, "dry: %v", web)
	steps.Done("patch")

	applied := applycorev1.ConfigMap("applied", namespace).WithData(map[string]string{"a": "1"})
	steps.Must(direct.Apply(ctx, applied, client.FieldOwner("one")), "apply")
	rival := applycorev1.ConfigMap("applied", namespace).WithData(map[string]string{"a": "2"})
	err = direct.Apply(ctx, rival, client.FieldOwner("two"))
	steps.Check(errors.IsConflict(err), "a rival is refused: %v", err)
	steps.Must(direct.Apply(ctx, rival, client.FieldOwner("two"), client.ForceOwnership), "apply")
	steps.Done("apply")

	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "alone", Namespace: namespace, Labels: map[string]string{"app": "alone"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx"}}},
	}
	steps.Must(direct.Create(ctx, pod), "a pod without service account")
	metadata := &metav1.PartialObjectMetadataList{}
	metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	steps.Must(direct.List(ctx, metadata, client.InNamespace(namespace), client.MatchingLabels{"app": "alone"}), "list")
	steps.Check(len(metadata.Items) == 1, "metadata: %v", metadata.Items)
	steps.Must(direct.DeleteAllOf(ctx, pod, client.InNamespace(namespace), client.GracePeriodSeconds(0)), "delete all")
	steps.Must(direct.List(ctx, metadata, client.InNamespace(namespace)), "list")
	steps.Check(len(metadata.Items) == 0, "deleted: %v", metadata.Items)
	steps.Done("delete")
}

func deployment() *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx"}}},
			},
		},
	}
}

// users come with certificates that envtest issues; they may do what is bound to them.
func users(ctx context.Context, environment *envtest.Environment, direct client.Client) {
	jane := steps.Got(environment.AddUser(envtest.User{Name: "jane", Groups: []string{"readers"}}, nil))
	hers := steps.Got(client.New(jane.Config(), client.Options{}))
	var found corev1.ConfigMapList
	err := hers.List(ctx, &found, client.InNamespace(namespace))
	steps.Check(errors.IsForbidden(err), "jane may not yet: %v", err)
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "readers", Namespace: namespace},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}},
	}
	steps.Must(direct.Create(ctx, role), "role")
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "readers", Namespace: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "readers"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "readers"}},
	}
	steps.Must(direct.Create(ctx, binding), "binding")
	steps.Until(ctx, "jane's rights", func() bool {
		return hers.List(ctx, &found, client.InNamespace(namespace)) == nil
	})
	steps.Done("users")
}
