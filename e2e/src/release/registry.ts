import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { env } from 'node:process'
import { freePort, startProcess, until } from '@tutti/chassis/testing'
import type { Test } from 'tap'

const OCI = 'application/vnd.oci.image'
const MANIFESTS = `${OCI}.index.v1+json, ${OCI}.manifest.v1+json, */*`
const PASSWORD = 'secret'
/** bcrypt of the password. */
const HTPASSWD = 'user:$2b$04$HHb36vlxv2lI53F2.NWhD.MJIt8Cd2ahhCwo6rfbLeZlJ1VNGqDUy\n'

/** For tap's `skip`: why there is no registry to push to, or false. */
export function withoutRegistry(): string | false {
  const { TUTTI_REGISTRY: registry, TUTTI_ORAS: oras } = env
  if (registry && oras) return false
  return env['TUTTI_REGISTRY_MISSING'] ?? env['TUTTI_ORAS_MISSING'] ?? 'TUTTI_REGISTRY is not set'
}

/** A registry of images on the loopback. */
export interface Registry {
  /** `127.0.0.1:PORT`; it speaks HTTP. */
  readonly address: string
  /** Environment of programs that have logged in, as `docker login` does it; helm has nothing of its own there. */
  readonly env: NodeJS.ProcessEnv
  /** GETs `/v2/<path>`. */
  get(path: string): Promise<Response>
}

/** Starts a docker-registry that asks for a password. It ends with the test. @param folder - for its files, an empty one. */
export async function startRegistry(t: Test, folder: string): Promise<Registry> {
  const address = `127.0.0.1:${await freePort()}`
  const passwords = join(folder, 'htpasswd')
  await writeFile(passwords, HTPASSWD)
  const config = {
    version: '0.1',
    log: { level: 'error', accesslog: { disabled: true } },
    storage: { filesystem: { rootdirectory: join(folder, 'data') } },
    http: { addr: address },
    auth: { htpasswd: { realm: 'tests', path: passwords } },
  }
  const file = join(folder, 'registry.json')
  await writeFile(file, JSON.stringify(config))
  const server = await startProcess(env['TUTTI_REGISTRY'] ?? '', ['serve', file])
  t.teardown(() => server.stop('SIGKILL'))
  const auth = Buffer.from(`user:${PASSWORD}`).toString('base64')
  const docker = join(folder, 'docker')
  await mkdir(docker)
  await writeFile(join(docker, 'config.json'), JSON.stringify({ auths: { [address]: { auth } } }))
  const headers = { authorization: `Basic ${auth}`, accept: MANIFESTS }
  const get = (path: string): Promise<Response> =>
    fetch(`http://${address}/v2/${path}`, { headers })
  await until('the registry answers', async () => (await get('').catch(() => undefined))?.ok)
  const home = join(folder, 'helm')
  const helm = { HELM_CACHE_HOME: home, HELM_CONFIG_HOME: home, HELM_DATA_HOME: home }
  return { address, get, env: { ...env, ...helm, DOCKER_CONFIG: docker } }
}
