import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

export type TestCertificates = Awaited<ReturnType<typeof createTestCertificates>>

/**
 * Makes the files (PEM) of an authority for one test, with a server's certificate and a client's, by openssl (3.0 or newer). They are
 * valid for two days.
 *
 * @param folder - where the files go, `t.testdir()` say; it exists.
 * @param names - of the server, as a subjectAltName has them.
 */
export async function createTestCertificates(
  folder: string,
  names: readonly string[] = ['DNS:localhost', 'IP:127.0.0.1'],
) {
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
