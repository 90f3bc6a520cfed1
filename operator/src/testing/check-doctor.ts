import type { PlainObject } from '@tutti/kube/testing'
import type { Test } from 'tap'
import type { CasePlace } from './case-rig.ts'
import { runKubectlTutti } from './run-kubectl-tutti.ts'

const of = (all: readonly PlainObject[], check: string) =>
  all.filter((one) => one['check'] === check)

/**
 * Checks `kubectl tutti doctor`: first in an empty cluster, then with an operator that does not start, and with resources that
 * need devices and an IngressClass.
 *
 * @param kubeconfigs - paths of kubeconfig files: of a user with all rights, and of a user with none.
 */
export async function checkDoctor(
  t: Test,
  place: CasePlace,
  kubeconfigs: { readonly admin: string; readonly reader: string },
): Promise<void> {
  const doctor = (config: string, ...args: readonly string[]) =>
    runKubectlTutti(config, 'doctor', '-n', place.namespace, ...args)
  const findings = async () => {
    const { code, out, err } = await doctor(kubeconfigs.admin, '-o', 'json')
    t.equal(err, '')
    return { code, all: JSON.parse(out).findings }
  }

  const empty = await findings()
  t.equal(empty.code, 1)
  t.match(of(empty.all, 'operator'), [{ status: 'missing', mending: /install the chart/ }])
  t.match(of(empty.all, 'kubernetes'), [{ status: 'ok' }])
  t.match(of(empty.all, 'custom resources'), [{ status: 'ok' }])
  t.match(of(empty.all, 'nats'), [{ status: 'note' }])
  t.match(of(empty.all, 'exposure'), [{ status: 'note' }, { status: 'note' }])
  t.match(of(empty.all, 'rights'), [{ status: 'ok' }])

  await installOperator(place)
  await place.applyModel('fast', { accelerator: {} })
  await place.applyEnsemble('ens', 'fast', {
    expose: { ingress: { className: 'no-such', hosts: ['a.example'] } },
  })
  const lacking = await findings()
  t.equal(lacking.code, 1)
  t.match(of(lacking.all, 'operator'), [
    {
      status: 'missing',
      found: /tutti-operator, version 0\.0\.1: 0 of 1 pods available/,
      mending: /describe deployment tutti-operator/,
    },
  ])
  t.match(of(lacking.all, 'devices'), [{ status: 'missing', neededBy: ['fast'] }])
  t.match(of(lacking.all, 'exposure'), [
    { status: 'missing', neededBy: ['ens'], mending: /expose\.ingress\.className/ },
    { status: 'note' },
  ])
  const { code, out } = await doctor(kubeconfigs.reader)
  t.equal(code, 0, out)
  t.match(out, /^note {5}operator: not looked at: .*User "reader" cannot list/m)
  t.match(out, /^note {5}namespace: not looked at: /m)
  t.match(out, /^note {5}rights: you may not patch deployments in .*, for kubectl tutti restart$/m)
}

/** A Deployment as the chart has it, of an old version, whose pods do not start. */
async function installOperator({ plain, path }: CasePlace): Promise<void> {
  const labels = {
    'app.kubernetes.io/part-of': 'tutti',
    'app.kubernetes.io/component': 'operator',
    'app.kubernetes.io/version': '0.0.1',
  }
  await plain.create(path('deployments'), {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'tutti-operator', labels },
    spec: {
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: 'operator', image: 'x' }] },
      },
    },
  })
}
