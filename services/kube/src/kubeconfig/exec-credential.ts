import { spawn } from 'node:child_process'
import { z } from 'zod'
import type { KubeContext } from './kubeconfig-file.ts'

/** What a plugin prints, as far as it is read. */
const ExecCredential = z.object({
  status: z.object({
    token: z.string().optional(),
    clientCertificateData: z.string().optional(),
    clientKeyData: z.string().optional(),
    expirationTimestamp: z.string().optional(),
  }),
})

export interface PluginCredential {
  readonly token?: string | undefined
  /** PEM. */
  readonly cert?: string | undefined
  readonly key?: string | undefined
  /** Milliseconds since the epoch; absent if it does not end. */
  readonly expiresMs?: number | undefined
}

/**
 * Asks the plugin of a user for credentials. It may ask the user of a terminal on standard error and standard input.
 *
 * @throws Error if it cannot be started, fails, or prints something else.
 * @see client.authentication.k8s.io
 */
export async function askPlugin(
  context: KubeContext,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<PluginCredential | undefined> {
  const { exec } = context.user
  if (exec === undefined) return undefined
  const isInteractive = exec.interactiveMode !== 'Never' && process.stdin.isTTY
  const info = {
    apiVersion: exec.apiVersion,
    kind: 'ExecCredential',
    spec: {
      interactive: isInteractive,
      ...(exec.provideClusterInfo === true && { cluster: toClusterInfo(context) }),
    },
  }
  const more = Object.fromEntries((exec.env ?? []).map(({ name, value }) => [name, value]))
  const env = { ...environment, ...more, KUBERNETES_EXEC_INFO: JSON.stringify(info) }
  const printed = await run(exec.command, exec.args ?? [], { env, isInteractive })
  const { status } = ExecCredential.parse(JSON.parse(printed))
  const { expirationTimestamp } = status
  return {
    token: status.token,
    cert: status.clientCertificateData,
    key: status.clientKeyData,
    expiresMs: expirationTimestamp === undefined ? undefined : Date.parse(expirationTimestamp),
  }
}

function toClusterInfo({ cluster }: KubeContext) {
  return {
    server: cluster.server,
    'tls-server-name': cluster['tls-server-name'],
    'insecure-skip-tls-verify': cluster['insecure-skip-tls-verify'],
    'certificate-authority-data': cluster['certificate-authority-data'],
  }
}

function run(
  command: string,
  args: readonly string[],
  o: {
    readonly env: Readonly<Record<string, string | undefined>>
    readonly isInteractive: boolean
  },
): Promise<string> {
  return new Promise((resolve, reject) => {
    const stdin = o.isInteractive ? 'inherit' : 'ignore'
    const child = spawn(command, args, { env: o.env, stdio: [stdin, 'pipe', 'inherit'] })
    let printed = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text))
    child.once('error', reject)
    child.once('close', (code, signal) => {
      if (code === 0) resolve(printed)
      else reject(new Error(`the plugin ${command} of the kubeconfig ended with ${code ?? signal}`))
    })
  })
}
