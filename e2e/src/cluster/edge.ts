import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createTestCertificates } from '@tutti/chassis/testing'
import type { PlainObject } from '@tutti/kube/testing'
import type { Test } from 'tap'
import { tempFolder } from '../temp-repository.ts'
import { INGRESS, kubectl, NODE_ADDRESS } from './kubectl.ts'

/** The Secret with the certificate. */
export const EDGE_SECRET = 'edge'

export type Edge = Awaited<ReturnType<typeof createEdge>>

/** Makes a certificate for hosts, with which clients outside of the cluster reach Ensembles. */
export async function createEdge(t: Test, hosts: readonly string[]) {
  const folder = await tempFolder(t)
  const names = hosts.map((host) => `DNS:${host}`)
  const { caFile, certFile, keyFile } = await createTestCertificates(folder, names)
  const hostsFile = join(folder, 'hosts')
  const lines = hosts.map((host) => `${NODE_ADDRESS} ${host}\n`)
  await writeFile(hostsFile, ['127.0.0.1 localhost\n', ...lines].join(''))
  const pair = [`--cert=${certFile}`, `--key=${keyFile}`]
  return {
    /** The authority of the certificate, PEM. */
    caFile,
    /** A file that is /etc/hosts for clients which find the hosts by name. */
    hostsFile,
    /** Puts the certificate into a namespace. */
    createSecret: async (namespace: string): Promise<void> => {
      await kubectl('create', 'secret', 'tls', EDGE_SECRET, `--namespace=${namespace}`, ...pair)
    },
  }
}

/** Flags of the scripts of e2e/python for a host. */
export function edgeFlags({ caFile }: Edge, host: string): readonly string[] {
  const address = `${host}:${INGRESS.https}`
  return [`--grpc=${address}`, `--http=${address}`, `--ca=${caFile}`]
}

/** An Ensemble that is reached by a host, through an Ingress with that certificate. */
export function exposeByIngress(ensemble: PlainObject, host: string): PlainObject {
  return { ...ensemble, spec: { ...ensemble['spec'], ...exposedBy(host) } }
}

/** The part of an Ensemble's spec by which it is reached so. */
export function exposedBy(host: string): PlainObject {
  const tls = [{ hosts: [host], secretName: EDGE_SECRET }]
  return { expose: { ingress: { className: 'traefik', hosts: [host], tls } } }
}
