import type { PlainClient, PlainObject } from '@tutti/kube/testing'
import type { EnsembleNamespace } from './ensemble-rig.ts'

/** The spec of an Ensemble over a Model, which may be missing. */
export const ENSEMBLE = {
  inputs: [{ name: 'X', datatype: 'FP32', shape: [4] }],
  outputs: [{ name: 'Y', from: 'a.Y' }],
  steps: [{ name: 'a', modelRef: { name: 'm' }, inputMap: { X: 'X' } }],
}

/** The plural and name of each object that belongs to a Router. */
export const MEMBERS: readonly (readonly [string, string])[] = [
  ['serviceaccounts', 'tutti-router'],
  ['roles', 'tutti-router'],
  ['rolebindings', 'tutti-router'],
  ['secrets', 'tutti-router-edge'],
  ['secrets', 'tutti-nats'],
  ['networkpolicies', 'tutti-router'],
  ['services', 'tutti-router-grpc'],
  ['services', 'tutti-router-http'],
  ['poddisruptionbudgets', 'tutti-router'],
  ['deployments', 'tutti-router'],
]

/** Resolves when `fits` returned true for each object of a namespace's Router. */
export async function untilAll(
  plain: PlainClient,
  ns: EnsembleNamespace,
  fits: (object: PlainObject | undefined) => boolean,
): Promise<void> {
  for (const [plural, name] of MEMBERS) await plain.until(ns.path(plural, name), fits)
}

export function withReplicas(replicas: number) {
  return (object: PlainObject | undefined): boolean => object?.['spec'].replicas === replicas
}

/** Returns the message of a condition; empty if it is absent. */
export function saidOf(status: PlainObject, type: string): string {
  return status['conditions'].find((one: PlainObject) => one['type'] === type)?.message ?? ''
}

export function textOf(value: unknown): string {
  return JSON.stringify(value) ?? ''
}
