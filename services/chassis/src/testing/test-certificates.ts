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
  const { caFile, issue } = await createTestAuthority(folder)
  const server = await issue('server', { names })
  const client = await issue('client')
  return {
    caFile,
    certFile: server.cert,
    keyFile: server.key,
    clientCertFile: client.cert,
    clientKeyFile: client.key,
  }
}

/** Makes the files of an authority, `NAME.pem` and `NAME.key`, that issues certificates into the same folder. */
export async function createTestAuthority(folder: string, name = 'ca') {
  const filesOf = (file: string) => ({
    cert: join(folder, `${file}.pem`),
    key: join(folder, `${file}.key`),
  })
  const ca = filesOf(name)
  await request(ca, ['-subj', '/CN=test authority'])
  const sign = ['-CA', ca.cert, '-CAkey', ca.key, '-addext', 'basicConstraints=critical,CA:FALSE']
  return {
    caFile: ca.cert,
    /** @param o.names - as a subjectAltName has them. @param o.subject - default `/CN=FILE`. */
    issue: async (
      file: string,
      o: { readonly subject?: string; readonly names?: readonly string[] } = {},
    ) => {
      const { subject = `/CN=${file}`, names = [] } = o
      const alternative = names.length === 0 ? [] : ['-addext', `subjectAltName=${names.join(',')}`]
      const issued = filesOf(file)
      await request(issued, [...sign, ...alternative, '-subj', subject])
      return issued
    },
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
