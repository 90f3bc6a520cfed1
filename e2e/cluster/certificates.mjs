import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Who speaks to the API server, by the name of the kubeconfig: user and groups. */
const USERS = {
  admin: ['admin', 'system:masters'],
  controllers: ['system:kube-controller-manager', ''],
  scheduler: ['system:kube-scheduler', ''],
  proxy: ['system:kube-proxy', ''],
  kubelet: ['system:node:NAME', 'system:nodes'],
}

/**
 * Makes what the programs of a node know each other by: an authority; one certificate of the API server, as a server and as a
 * client; the key of service accounts; a token and a kubeconfig for each user.
 *
 * @param {string} folder - is made.
 * @param {{ name: string, address: string, names: readonly string[] }} o - `name` of the node; `address` and `names` of the
 *   API server.
 */
export function makeCertificates(folder, { name, address, names }) {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const path = (file) => join(folder, file)
  const signs = ['-addext', 'keyUsage=critical,keyCertSign,cRLSign,digitalSignature']
  certify(path, 'ca', '/CN=tutti-test', signs)
  const extensions = [
    'basicConstraints=critical,CA:FALSE',
    `subjectAltName=${names.join(',')}`,
    'extendedKeyUsage=serverAuth,clientAuth',
  ].flatMap((text) => ['-addext', text])
  const by = ['-CA', path('ca.crt'), '-CAkey', path('ca.key')]
  certify(path, 'server', '/O=system:masters/CN=tutti-api-server', [...by, ...extensions])
  const curve = ['ecparam', '-name', 'prime256v1', '-genkey', '-noout']
  openssl(...curve, '-out', path('accounts.key'))
  const ca = readFileSync(path('ca.crt')).toString('base64')
  const lines = Object.entries(USERS).map(([file, [user, group]]) => {
    const token = randomBytes(16).toString('hex')
    const text = kubeconfig({ server: `https://${address}:6443`, ca, token })
    writeFileSync(path(`${file}.kubeconfig`), text, { mode: 0o600 })
    return `${token},${user.replace('NAME', name)},${file},"${group}"\n`
  })
  writeFileSync(path('tokens.csv'), lines.join(''), { mode: 0o600 })
}

function certify(path, file, subject, args) {
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const out = ['-keyout', path(`${file}.key`), '-out', path(`${file}.crt`)]
  openssl('req', '-x509', ...curve, '-days', '365', ...out, '-subj', subject, ...args)
}

function openssl(...args) {
  execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] })
}

/** As JSON, which is YAML too. */
function kubeconfig({ server, ca, token }) {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'tutti', cluster: { server, 'certificate-authority-data': ca } }],
    users: [{ name: 'tutti', user: { token } }],
    contexts: [{ name: 'tutti', context: { cluster: 'tutti', user: 'tutti' } }],
    'current-context': 'tutti',
  })
}
