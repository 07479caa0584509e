"""Volumes of pods, PersistentVolume, PersistentVolumeClaim."""
