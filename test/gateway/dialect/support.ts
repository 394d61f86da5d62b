import type { IClientOptions } from 'mqtt';
import { FirmwareBox, type FirmwareOptions } from '../../support/firmware-box.ts';
import { ACCOUNT, BOXES, type TestGateway, type TestOptions, testGateway } from '../harness.ts';

export const VIETQR = {
  checkSumSalt: 'sample-checksum-salt',
  boxIdSalt: 'sample-box-id-salt',
  login: { username: 'vietqr-boxes', password: 'sample-login-of-all-boxes' },
};

export const VIETQR_BOX = {
  terminalCode: 'VVB000007',
  serialNumber: 'VVB900007',
  dialect: 'vietqr',
  macAddr: '02:00:5E:10:00:01',
  account: ACCOUNT.bankAccount,
};

/** A gateway with the boxes of the harness, and one that speaks the dialect; `box` changes it. */
export function dialectGateway(options: TestOptions = {}, box: Record<string, unknown> = {}): Promise<TestGateway> {
  const boxes = [...BOXES, { ...VIETQR_BOX, ...box }];
  return testGateway({ ...options, config: { boxes, vietqrBoxes: VIETQR, ...options.config } });
}

export function firmware(gateway: Pick<TestGateway, 'mqttUrl'>, change: Partial<FirmwareOptions> = {}): FirmwareBox {
  const { checkSumSalt, login } = VIETQR;
  const { macAddr } = VIETQR_BOX;
  return new FirmwareBox({ mqttUrl: gateway.mqttUrl ?? '', macAddr, checkSumSalt, login, reconnectMs: 50, ...change });
}

/** The fields of send-qr that name the box. */
export const TO_IT = { terminalCode: VIETQR_BOX.terminalCode, serialNumber: VIETQR_BOX.serialNumber };

export const LOGIN: IClientOptions = { ...VIETQR.login, reconnectPeriod: 0 };
