// A small operator on controller-runtime, to check and to break.
//
// A Box asks for so many pods of an image. It has a Secret with a generated password, a ConfigMap, a Service and a
// StatefulSet, all owned by it, and a record in a ConfigMap of its own ("<name>-register") that its finalizer removes.
// MUTANT chooses a mistake; see the switch statements.
package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const finalizer = "bench.konverge.dev/register"

var kind = schema.GroupVersionKind{Group: "bench.konverge.dev", Version: "v1", Kind: "Box"}
var mutant = os.Getenv("MUTANT")

type reconciler struct {
	client.Client
	made map[string]bool // of the mutant "flag-in-memory"
}

func newBox() *unstructured.Unstructured {
	box := &unstructured.Unstructured{}
	box.SetGroupVersionKind(kind)
	return box
}

func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	box := newBox()
	if err := r.Get(ctx, req.NamespacedName, box); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if box.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, r.finalize(ctx, box)
	}
	if controllerutil.AddFinalizer(box, finalizer) {
		return ctrl.Result{}, r.Update(ctx, box)
	}
	generation, _, _ := unstructured.NestedInt64(box.Object, "status", "observedGeneration")
	if mutant == "generation-first" {
		if generation == box.GetGeneration() {
			return ctrl.Result{}, nil
		}
		if err := r.say(ctx, box, false); err != nil {
			return ctrl.Result{}, err
		}
	}
	if mutant == "waits-for-health" && generation != 0 && generation != box.GetGeneration() {
		set := &appsv1.StatefulSet{}
		if err := r.Get(ctx, req.NamespacedName, set); err == nil && set.Status.ReadyReplicas < *set.Spec.Replicas {
			return ctrl.Result{RequeueAfter: time.Second}, nil // a change is taken up when the last one has come to a good end
		}
	}
	if err := r.register(ctx, box); err != nil {
		return ctrl.Result{}, err
	}
	for _, child := range []client.Object{r.secret(box), r.config(box), r.service(box), r.set(box)} {
		if err := r.ensure(ctx, box, child); err != nil {
			if mutant == "error-swallowed" && !apierrors.IsConflict(err) {
				r.made[child.GetName()+child.GetObjectKind().GroupVersionKind().Kind] = true
				continue
			}
			var theirs *notOwned
			if errors.As(err, &theirs) { // nothing goes on until they give it back: users must be told
				err = errors.Join(err, r.say(ctx, box, false))
			}
			return ctrl.Result{}, err
		}
	}
	set := &appsv1.StatefulSet{}
	if err := r.Get(ctx, req.NamespacedName, set); err != nil {
		return ctrl.Result{RequeueAfter: time.Second}, client.IgnoreNotFound(err)
	}
	ready := set.Spec.Replicas != nil && set.Status.ReadyReplicas == *set.Spec.Replicas
	if mutant == "ready-without-looking" {
		ready = true
	}
	return ctrl.Result{}, r.say(ctx, box, ready)
}

func (r *reconciler) finalize(ctx context.Context, box *unstructured.Unstructured) error {
	if !controllerutil.ContainsFinalizer(box, finalizer) {
		return nil
	}
	record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: box.GetNamespace(), Name: box.GetName() + "-register"}}
	switch mutant {
	case "cleanup-skipped":
	case "all-of-the-kind": // as if no other Box were in the namespace
		if err := r.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(box.GetNamespace()), client.HasLabels{"box"}); err != nil {
			return err
		}
		if err := r.Delete(ctx, record); client.IgnoreNotFound(err) != nil {
			return err
		}
	case "delete-not-idempotent":
		if err := r.Delete(ctx, record); err != nil {
			return err // also when it is gone: the finalizer stays for ever
		}
	default:
		if err := r.Delete(ctx, record); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	controllerutil.RemoveFinalizer(box, finalizer)
	return r.Update(ctx, box)
}

// boxOfRecord is asked of every ConfigMap, since a record has no owner: others may delete it.
func boxOfRecord(_ context.Context, object client.Object) []reconcile.Request {
	name, isRecord := strings.CutSuffix(object.GetName(), "-register")
	if !isRecord {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
}

func (r *reconciler) register(ctx context.Context, box *unstructured.Unstructured) error {
	record := &corev1.ConfigMap{}
	record.Namespace, record.Name = box.GetNamespace(), box.GetName()+"-register"
	record.Data = map[string]string{"image": text(box, "image")}
	live := &corev1.ConfigMap{}
	err := r.Get(ctx, client.ObjectKeyFromObject(record), live)
	if apierrors.IsNotFound(err) {
		return r.Create(ctx, record)
	}
	if err != nil || live.Data["image"] == record.Data["image"] {
		return err
	}
	live.Data = record.Data
	return r.Update(ctx, live)
}

func (r *reconciler) ensure(ctx context.Context, box *unstructured.Unstructured, wanted client.Object) error {
	key := wanted.GetName() + wanted.GetObjectKind().GroupVersionKind().Kind
	if _, isService := wanted.(*corev1.Service); isService && mutant == "flag-in-memory" {
		set := &appsv1.StatefulSet{}
		if err := r.Get(ctx, client.ObjectKey{Namespace: box.GetNamespace(), Name: box.GetName()}, set); err == nil {
			return nil // "it was made together with the StatefulSet"
		}
	}
	if r.made[key] {
		return nil
	}
	if err := controllerutil.SetControllerReference(box, wanted, r.Scheme()); err != nil {
		return err
	}
	live := wanted.DeepCopyObject().(client.Object)
	err := r.Get(ctx, client.ObjectKeyFromObject(wanted), live)
	if apierrors.IsNotFound(err) {
		return r.Create(ctx, wanted)
	}
	if err != nil {
		return err
	}
	if !metav1.IsControlledBy(live, box) && mutant != "taken-by-name" {
		return &notOwned{wanted.GetName()}
	}
	return r.update(ctx, box, live, wanted)
}

type notOwned struct{ name string }

func (e *notOwned) Error() string { return e.name + " is an object of others" }

func (r *reconciler) update(ctx context.Context, box *unstructured.Unstructured, live, wanted client.Object) error {
	changed := false
	if !metav1.IsControlledBy(live, box) {
		live.SetOwnerReferences(wanted.GetOwnerReferences())
		changed = true
	}
	if live.GetLabels()["box"] != box.GetName() {
		live.SetLabels(wanted.GetLabels())
		changed = true
	}
	switch old := live.(type) {
	case *corev1.Secret:
		if mutant == "secret-again" && !r.made["password of "+box.GetName()] {
			r.made["password of "+box.GetName()] = true
			old.StringData = wanted.(*corev1.Secret).StringData
			changed = true
		}
	case *corev1.ConfigMap:
		if new := wanted.(*corev1.ConfigMap); old.Data["image"] != new.Data["image"] {
			old.Data = new.Data
			changed = true
		}
	case *corev1.Service:
		if new := wanted.(*corev1.Service); old.Spec.Selector["box"] != new.Spec.Selector["box"] || len(old.Spec.Selector) != 1 {
			old.Spec.Selector = new.Spec.Selector
			changed = true
		}
	case *appsv1.StatefulSet:
		new := wanted.(*appsv1.StatefulSet)
		if mutant == "scale-ignored" && *old.Spec.Replicas > *new.Spec.Replicas {
			new.Spec.Replicas = old.Spec.Replicas // pods are only added
		}
		if *old.Spec.Replicas != *new.Spec.Replicas || old.Spec.Template.Spec.Containers[0].Image != new.Spec.Template.Spec.Containers[0].Image {
			old.Spec.Replicas = new.Spec.Replicas
			old.Spec.Template.Spec.Containers[0].Image = new.Spec.Template.Spec.Containers[0].Image
			changed = true
		}
	}
	if !changed {
		return nil
	}
	if mutant == "whole-object" { // with what others wrote in it
		live.SetAnnotations(nil)
	}
	return r.Update(ctx, live)
}

func (r *reconciler) say(ctx context.Context, box *unstructured.Unstructured, ready bool) error {
	value, reason := "False", "PodsNotReady"
	if ready {
		value, reason = "True", "PodsReady"
	}
	now := metav1.Now().UTC().Format(time.RFC3339)
	old, _, _ := unstructured.NestedSlice(box.Object, "status", "conditions")
	observed, _, _ := unstructured.NestedInt64(box.Object, "status", "observedGeneration")
	if len(old) == 1 && observed == box.GetGeneration() {
		if before, ok := old[0].(map[string]interface{}); ok && before["status"] == value {
			return nil
		}
	}
	condition := map[string]interface{}{"type": "Ready", "status": value, "reason": reason, "message": "", "lastTransitionTime": now}
	box.Object["status"] = map[string]interface{}{"observedGeneration": box.GetGeneration(), "conditions": []interface{}{condition}}
	return r.Status().Update(ctx, box)
}

func text(box *unstructured.Unstructured, field string) string {
	value, _, _ := unstructured.NestedString(box.Object, "spec", field)
	return value
}

func meta(box *unstructured.Unstructured, suffix string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: box.GetNamespace(), Name: box.GetName() + suffix, Labels: map[string]string{"box": box.GetName()}}
}

func (r *reconciler) secret(box *unstructured.Unstructured) client.Object {
	password := make([]byte, 12)
	_, _ = rand.Read(password)
	return &corev1.Secret{ObjectMeta: meta(box, ""), StringData: map[string]string{"password": hex.EncodeToString(password)}}
}

func (r *reconciler) config(box *unstructured.Unstructured) client.Object {
	return &corev1.ConfigMap{ObjectMeta: meta(box, ""), Data: map[string]string{"image": text(box, "image")}}
}

func (r *reconciler) service(box *unstructured.Unstructured) client.Object {
	ports := []corev1.ServicePort{{Name: "http", Port: 80}}
	return &corev1.Service{ObjectMeta: meta(box, ""), Spec: corev1.ServiceSpec{Selector: map[string]string{"box": box.GetName()}, Ports: ports}}
}

func (r *reconciler) set(box *unstructured.Unstructured) client.Object {
	count, _, _ := unstructured.NestedInt64(box.Object, "spec", "replicas")
	replicas := int32(count)
	labels := map[string]string{"box": box.GetName()}
	pod := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "box", Image: text(box, "image")}}}}
	return &appsv1.StatefulSet{ObjectMeta: meta(box, ""), Spec: appsv1.StatefulSetSpec{
		// In order, one pod that never gets ready keeps the others from being replaced, also by what would cure it.
		PodManagementPolicy: appsv1.ParallelPodManagement,
		Replicas:            &replicas, ServiceName: box.GetName(), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: pod}}
}

func main() {
	ctrl.SetLogger(zap.New())
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		panic(err)
	}
	box := newBox()
	builder := ctrl.NewControllerManagedBy(manager).Named("box").For(box).
		Owns(&corev1.Secret{}).Owns(&corev1.ConfigMap{}).Owns(&appsv1.StatefulSet{}).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(boxOfRecord))
	if mutant != "service-unwatched" {
		builder = builder.Owns(&corev1.Service{})
	}
	err = builder.Complete(&reconciler{Client: manager.GetClient(), made: map[string]bool{}})
	if err != nil {
		panic(err)
	}
	if err := manager.Start(ctrl.SetupSignalHandler()); err != nil {
		panic(err)
	}
}
