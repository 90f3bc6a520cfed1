import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Files of an authority made for one test, with a server certificate and a client's. PEM. */
export interface TestCertificates {
  readonly caFile: string
  readonly certFile: string
  readonly keyFile: string
  readonly clientCertFile: string
  readonly clientKeyFile: string
}

/**
 * Makes certificates with openssl (3.0 or newer), valid for two days.
 *
 * @param folder - where the files go, `t.testdir()` say; it exists.
 * @param names - of the server, as a subjectAltName has them.
 */
export async function createTestCertificates(
  folder: string,
  names: readonly string[] = ['DNS:localhost', 'IP:127.0.0.1'],
): Promise<TestCertificates> {
  const file = (name: string): string => join(folder, name)
  const ca = { cert: file('ca.pem'), key: file('ca.key') }
  await request(ca, ['-subj', '/CN=test authority'])
  const sign = ['-CA', ca.cert, '-CAkey', ca.key, '-addext', 'basicConstraints=critical,CA:FALSE']
  const server = { cert: file('server.pem'), key: file('server.key') }
  const subject = ['-addext', `subjectAltName=${names.join(',')}`, '-subj', '/CN=server']
  await request(server, [...sign, ...subject])
  const client = { cert: file('client.pem'), key: file('client.key') }
  await request(client, [...sign, '-subj', '/CN=client'])
  return {
    caFile: ca.cert,
    certFile: server.cert,
    keyFile: server.key,
    clientCertFile: client.cert,
    clientKeyFile: client.key,
  }
}

async function request(
  to: { readonly cert: string; readonly key: string },
  args: readonly string[],
): Promise<void> {
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const files = ['-keyout', to.key, '-out', to.cert]
  await run('openssl', ['req', '-x509', ...curve, '-days', '2', ...files, ...args])
}
