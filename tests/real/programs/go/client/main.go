// A user of the API by client-go: typed clients (their bodies are protobuf), informers with WatchList, server-side
// apply, dynamic and metadata clients, discovery. Each step prints `ok <step>`.
package main

import (
	"context"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/pager"
	watchtools "k8s.io/client-go/tools/watch"

	"konverge.invalid/real/steps"
)

const namespace = "go-client"

func main() {
	config := steps.Got(clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")))
	config.QPS, config.Burst = 1000, 1000
	client := kubernetes.NewForConfigOrDie(config)
	ctx, cancel := context.WithTimeout(context.Background(), steps.Limit)
	defer cancel()

	version := steps.Got(client.Discovery().ServerVersion())
	steps.Check(version.Major == "1", "version: %v", version)
	_, resources, err := client.Discovery().ServerGroupsAndResources()
	steps.Must(err, "discovery")
	steps.Check(len(resources) > 20, "%d group versions", len(resources))
	steps.Done("discovery")

	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	steps.Got(client.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{}))
	objects(ctx, client)
	apply(ctx, client)
	waitFor(ctx, client)
	watchInformers(ctx, client, config)
	pages(ctx, client)
	rights(ctx, client)
	remove(ctx, client)
}

// objects goes through the verbs with a typed client.
func objects(ctx context.Context, client kubernetes.Interface) {
	pods := client.CoreV1().Pods(namespace)
	_, err := client.CoreV1().ServiceAccounts(namespace).Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	steps.Check(err == nil || errors.IsAlreadyExists(err), "service account: %v", err)
	grace := int64(0)
	pod := steps.Got(pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "p-", Labels: map[string]string{"app": "p"}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			Volumes:                       []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
			Containers: []corev1.Container{{
				Name: "c", Image: "nginx", VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/v"}},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("0.25")}},
			}},
		},
	}, metav1.CreateOptions{FieldManager: "go"}))
	cpu := pod.Spec.Containers[0].Resources.Requests["cpu"]
	steps.Check(cpu.String() == "250m" && *pod.Spec.TerminationGracePeriodSeconds == 0, "pod: %v", pod.Spec)
	steps.Check(pod.Spec.Volumes[0].EmptyDir != nil, "volume: %v", pod.Spec.Volumes)
	image := []byte(`{"spec":{"containers":[{"name":"c","image":"nginx:2"}]}}`)
	pod = steps.Got(pods.Patch(ctx, pod.Name, types.StrategicMergePatchType, image, metav1.PatchOptions{}))
	steps.Check(len(pod.Spec.Containers) == 1 && pod.Spec.Containers[0].Image == "nginx:2", "patched: %v", pod.Spec)
	pod.Status.Phase = corev1.PodRunning
	pod = steps.Got(pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}))
	steps.Check(pod.Status.Phase == corev1.PodRunning, "status: %v", pod.Status)
	stale := pod.DeepCopy()
	stale.ResourceVersion = "1"
	_, err = pods.Update(ctx, stale, metav1.UpdateOptions{})
	steps.Check(errors.IsConflict(err), "stale: %v", err)
	_, err = pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "Bad"}}, metav1.CreateOptions{})
	steps.Check(errors.IsInvalid(err), "invalid: %v", err)
	steps.Done("objects")
}

func apply(ctx context.Context, client kubernetes.Interface) {
	labels := map[string]string{"app": "web"}
	container := applycorev1.Container().WithName("web").WithImage("nginx")
	template := applycorev1.PodTemplateSpec().WithLabels(labels).WithSpec(applycorev1.PodSpec().WithContainers(container))
	selector := applymetav1.LabelSelector().WithMatchLabels(labels)
	web := applyappsv1.Deployment("web", namespace).
		WithSpec(applyappsv1.DeploymentSpec().WithReplicas(2).WithSelector(selector).WithTemplate(template))
	deployments := client.AppsV1().Deployments(namespace)
	steps.Got(deployments.Apply(ctx, web, metav1.ApplyOptions{FieldManager: "go"}))
	scale := steps.Got(deployments.GetScale(ctx, "web", metav1.GetOptions{}))
	scale.Spec.Replicas = 3
	steps.Got(deployments.UpdateScale(ctx, "web", scale, metav1.UpdateOptions{FieldManager: "scaler"}))
	_, err := deployments.Apply(ctx, web, metav1.ApplyOptions{FieldManager: "go"})
	steps.Check(errors.IsConflict(err), "the scaler owns the replicas: %v", err)
	found := steps.Got(deployments.Get(ctx, "web", metav1.GetOptions{}))
	extracted := steps.Got(applyappsv1.ExtractDeployment(found, "go"))
	steps.Check(extracted.Spec.Replicas == nil && extracted.Spec.Template != nil, "extracted: %v", extracted.Spec)
	steps.Done("apply")
}

// waitFor is what `kubectl wait` does.
func waitFor(ctx context.Context, client kubernetes.Interface) {
	deployments := client.AppsV1().Deployments(namespace)
	selector := fields.OneTermEqualSelector("metadata.name", "web").String()
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = selector
			return deployments.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selector
			return deployments.Watch(ctx, options)
		},
	}
	found := steps.Got(deployments.Get(ctx, "web", metav1.GetOptions{}))
	found.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}}
	steps.Got(deployments.UpdateStatus(ctx, found, metav1.UpdateOptions{}))
	event, err := watchtools.UntilWithSync(ctx, source, &appsv1.Deployment{}, nil, func(event watch.Event) (bool, error) {
		seen := event.Object.(*appsv1.Deployment)
		return len(seen.Status.Conditions) == 1 && seen.Generation == found.Generation, nil
	})
	steps.Must(err, "until")
	steps.Check(event.Object.(*appsv1.Deployment).Name == "web", "event: %v", event)
	steps.Done("wait")
}

func pages(ctx context.Context, client kubernetes.Interface) {
	maps := client.CoreV1().ConfigMaps(namespace)
	for i := range 25 {
		made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("page-%02d", i), Labels: map[string]string{"page": "yes"}}}
		steps.Got(maps.Create(ctx, made, metav1.CreateOptions{}))
	}
	seen := 0
	listing := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return maps.List(ctx, options)
	})
	listing.PageSize = 10
	steps.Must(listing.EachListItem(ctx, metav1.ListOptions{LabelSelector: "page=yes"}, func(runtime.Object) error {
		seen++
		return nil
	}), "pages")
	steps.Check(seen == 25, "%d seen", seen)
	steps.Done("pages")
}

func rights(ctx context.Context, client kubernetes.Interface) {
	access := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "jane", Extra: map[string]authorizationv1.ExtraValue{"scopes": {"a", "b"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "get", Resource: "pods"},
	}}
	reviewed := steps.Got(client.AuthorizationV1().SubjectAccessReviews().Create(ctx, access, metav1.CreateOptions{}))
	steps.Check(!reviewed.Status.Allowed, "jane: %v", reviewed.Status)
	seconds := int64(600)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	accounts := client.CoreV1().ServiceAccounts(namespace)
	token := steps.Got(accounts.CreateToken(ctx, "default", request, metav1.CreateOptions{}))
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token.Status.Token}}
	known := steps.Got(client.AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{}))
	steps.Check(known.Status.User.Username == "system:serviceaccount:"+namespace+":default", "token: %v", known.Status)
	steps.Done("rights")
}

func remove(ctx context.Context, client kubernetes.Interface) {
	maps := client.CoreV1().ConfigMaps(namespace)
	chosen := metav1.ListOptions{LabelSelector: "page=yes"}
	steps.Must(maps.DeleteCollection(ctx, metav1.DeleteOptions{}, chosen), "delete collection")
	left := steps.Got(maps.List(ctx, chosen))
	steps.Check(len(left.Items) == 0, "left: %v", left.Items)
	foreground, wrong := metav1.DeletePropagationForeground, types.UID("wrong")
	deployments := client.AppsV1().Deployments(namespace)
	err := deployments.Delete(ctx, "web", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}})
	steps.Check(errors.IsConflict(err), "another's uid: %v", err)
	steps.Must(deployments.Delete(ctx, "web", metav1.DeleteOptions{PropagationPolicy: &foreground}), "delete")
	dying := steps.Got(deployments.Get(ctx, "web", metav1.GetOptions{}))
	steps.Check(dying.DeletionTimestamp != nil && dying.Finalizers[0] == metav1.FinalizerDeleteDependents, "%v", dying)
	steps.Done("delete")
}
