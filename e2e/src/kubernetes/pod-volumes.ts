import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { PlainClient, PlainObject } from '@tutti/kube/testing'
import type { PathMapping } from './pod-commands.ts'

/** The volumes of one pod as folders. */
export class PodVolumes {
  readonly #pod: PlainObject
  readonly #plain: PlainClient
  readonly #folder: string
  readonly #paths = new Map<string, string>()
  #token: { readonly text: string; readonly renewAt: number } | undefined

  /** @param folder - the pod's own. */
  constructor(pod: PlainObject, plain: PlainClient, folder: string) {
    this.#pod = pod
    this.#plain = plain
    this.#folder = folder
  }

  /**
   * Makes them, or brings those that come from objects up to date.
   *
   * @throws Error if an object or folder is not there, as the kubelet says FailedMount.
   */
  async sync(): Promise<void> {
    for (const volume of this.#pod['spec'].volumes ?? []) {
      this.#paths.set(volume.name, await this.#syncVolume(volume))
    }
  }

  /** Where a container finds what it mounts. */
  mappingsOf(container: PlainObject): readonly PathMapping[] {
    return (container['volumeMounts'] ?? []).map(
      ({ name, mountPath, subPath = '' }: PlainObject) => {
        const path = this.#paths.get(name)
        if (path === undefined) throw new Error(`the pod has no volume ${name}`)
        return { mountPath, path: join(path, subPath) }
      },
    )
  }

  async remove(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 })
  }

  async #syncVolume(volume: PlainObject): Promise<string> {
    const { hostPath, persistentVolumeClaim: claim } = volume
    if (hostPath !== undefined) return await existing(hostPath.path)
    if (claim !== undefined) return await existing(await this.#pathOfClaim(claim.claimName))
    const folder = join(this.#folder, volume['name'])
    await mkdir(folder, { recursive: true })
    if (volume['emptyDir'] === undefined) {
      await writeFiles(folder, await this.#filesOf(volume))
    }
    return folder
  }

  /** A claim is a folder of the node: its volume is of kind hostPath. */
  async #pathOfClaim(claim: string): Promise<string> {
    const { spec } = await this.#object('persistentvolumeclaims', claim)
    if (spec.volumeName === undefined) throw new Error(`claim ${claim} is not bound`)
    const volume = await this.#plain.get(`/api/v1/persistentvolumes/${spec.volumeName}`)
    return volume['spec'].hostPath.path
  }

  async #filesOf(source: PlainObject): Promise<ReadonlyMap<string, Buffer>> {
    const { secret, configMap, projected, serviceAccountToken: token, downwardAPI } = source
    if (secret !== undefined) {
      return await this.#keysOf('secrets', secret.secretName ?? secret.name, secret)
    }
    if (configMap !== undefined) return await this.#keysOf('configmaps', configMap.name, configMap)
    if (token !== undefined) return new Map([[token.path, await this.#tokenText(token)]])
    if (downwardAPI !== undefined) return this.#ownFields(downwardAPI.items)
    if (projected === undefined) {
      throw new Error(`volume ${source['name']}: this kubelet does not know its kind`)
    }
    const files = await Promise.all(projected.sources.map((one: PlainObject) => this.#filesOf(one)))
    return new Map(files.flatMap((some: ReadonlyMap<string, Buffer>) => [...some]))
  }

  async #keysOf(
    plural: string,
    name: string,
    { optional, items }: PlainObject,
  ): Promise<ReadonlyMap<string, Buffer>> {
    const found = await this.#object(plural, name).catch((error: unknown): PlainObject => {
      if (optional === true) return {}
      throw error
    })
    const { data = {}, binaryData = {} } = found
    const encoding = plural === 'secrets' ? 'base64' : 'utf8'
    const files = new Map<string, Buffer>()
    for (const [key, text] of Object.entries<string>(data)) {
      files.set(key, Buffer.from(text, encoding))
    }
    for (const [key, text] of Object.entries<string>(binaryData)) {
      files.set(key, Buffer.from(text, 'base64'))
    }
    if (items === undefined) return files
    return new Map(
      items.flatMap(({ key, path }: PlainObject) => {
        const content = files.get(key)
        if (content !== undefined) return [[path, content]]
        if (optional === true) return []
        throw new Error(`${plural}/${name} has no key ${key}`)
      }),
    )
  }

  /** Renewed at four fifths of its life, as the kubelet does. */
  async #tokenText({ expirationSeconds = 3600, audience }: PlainObject): Promise<Buffer> {
    if (this.#token === undefined || Date.now() > this.#token.renewAt) {
      const { namespace, name, uid } = this.#pod['metadata']
      const account = this.#pod['spec'].serviceAccountName
      const { status } = await this.#plain.create(
        `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`,
        {
          apiVersion: 'authentication.k8s.io/v1',
          kind: 'TokenRequest',
          spec: {
            expirationSeconds,
            ...(audience !== undefined && { audiences: [audience] }),
            boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid },
          },
        },
      )
      const renewAt = Date.now() + expirationSeconds * 800
      this.#token = { text: status.token, renewAt }
    }
    return Buffer.from(this.#token.text)
  }

  #ownFields(items: readonly PlainObject[]): ReadonlyMap<string, Buffer> {
    return new Map(
      items.map(({ path, fieldRef }) => {
        const [, field = ''] = /^metadata\.(name|namespace|uid)$/.exec(fieldRef?.fieldPath) ?? []
        if (field === '') throw new Error(`${path}: want a field of the pod's metadata`)
        return [path, Buffer.from(this.#pod['metadata'][field])]
      }),
    )
  }

  async #object(plural: string, name: string): Promise<PlainObject> {
    const { namespace } = this.#pod['metadata']
    return await this.#plain.get(`/api/v1/namespaces/${namespace}/${plural}/${name}`)
  }
}

async function existing(path: string): Promise<string> {
  if ((await stat(path)).isDirectory()) return path
  throw new Error(`${path} is no folder`)
}

/** Only what changed, and each file at once. */
async function writeFiles(folder: string, files: ReadonlyMap<string, Buffer>): Promise<void> {
  for (const [name, content] of files) {
    const path = join(folder, name)
    const before = await readFile(path).catch(() => undefined)
    if (before?.equals(content)) continue
    const next = join(folder, `.next-${name}`)
    await writeFile(next, content)
    await rename(next, path)
  }
}
