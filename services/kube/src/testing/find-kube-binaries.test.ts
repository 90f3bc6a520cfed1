import { env } from 'node:process'
import t from 'tap'
import { findKubeBinaries, withoutKube } from './find-kube-binaries.ts'

const NAMES = ['TUTTI_KUBE_BIN', 'KUBEBUILDER_ASSETS', 'TUTTI_KUBE_MISSING'] as const

await t.test('why tests are skipped is said by name', async (t) => {
  const before = NAMES.map((name) => [name, env[name]] as const)
  t.teardown(() => {
    for (const [name, value] of before) {
      if (value === undefined) delete env[name]
      else env[name] = value
    }
  })
  for (const name of NAMES) delete env[name]
  t.equal(withoutKube(), 'neither TUTTI_KUBE_BIN nor KUBEBUILDER_ASSETS is set')
  env['TUTTI_KUBE_MISSING'] = 'there is no Go'
  t.equal(withoutKube(), 'there is no Go')
  const folder = t.testdir({ etcd: '', 'kube-apiserver': '', helm: '' })
  env['KUBEBUILDER_ASSETS'] = folder
  t.equal(findKubeBinaries(), folder)
  t.equal(withoutKube(), false)
  t.equal(withoutKube('helm'), false)
  t.equal(withoutKube('helm', 'kubectl'), `${folder} lacks kubectl`)
  env['TUTTI_KUBE_BIN'] = '/nowhere'
  t.equal(withoutKube(), '/nowhere lacks etcd, kube-apiserver')
})
