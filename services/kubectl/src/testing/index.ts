export { deployment, routerPod, startListServer } from './list-server.ts'
export { runKubectlCommand } from './run-kubectl-command.ts'
