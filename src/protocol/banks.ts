/** A bank that accepts VietQR transfers: its short name, its six-digit BIN and its full name. */
export interface Bank {
  code: string;
  bin: string;
  name: string;
}

/** Short name, BIN, full name. If several names have had the same BIN, the current one. */
const TABLE: readonly (readonly [code: string, bin: string, name: string])[] = [
  ['ICB', '970415', 'Ngân hàng TMCP Công thương Việt Nam'],
  ['VCB', '970436', 'Ngân hàng TMCP Ngoại thương Việt Nam'],
  ['BIDV', '970418', 'Ngân hàng TMCP Đầu tư và Phát triển Việt Nam'],
  ['VBA', '970405', 'Ngân hàng Nông nghiệp và Phát triển Nông thôn Việt Nam'],
  ['OCB', '970448', 'Ngân hàng TMCP Phương Đông'],
  ['MB', '970422', 'Ngân hàng TMCP Quân đội'],
  ['TCB', '970407', 'Ngân hàng TMCP Kỹ thương Việt Nam'],
  ['ACB', '970416', 'Ngân hàng TMCP Á Châu'],
  ['VPB', '970432', 'Ngân hàng TMCP Việt Nam Thịnh Vượng'],
  ['TPB', '970423', 'Ngân hàng TMCP Tiên Phong'],
  ['STB', '970403', 'Ngân hàng TMCP Sài Gòn Thương Tín'],
  ['HDB', '970437', 'Ngân hàng TMCP Phát triển Thành phố Hồ Chí Minh'],
  ['VCCB', '970454', 'Ngân hàng TMCP Bản Việt'],
  ['SCB', '970429', 'Ngân hàng TMCP Sài Gòn'],
  ['VIB', '970441', 'Ngân hàng TMCP Quốc tế Việt Nam'],
  ['SHB', '970443', 'Ngân hàng TMCP Sài Gòn - Hà Nội'],
  ['EIB', '970431', 'Ngân hàng TMCP Xuất Nhập khẩu Việt Nam'],
  ['MSB', '970426', 'Ngân hàng TMCP Hàng Hải Việt Nam'],
  ['CAKE', '546034', 'Ngân hàng số CAKE by VPBank'],
  ['Ubank', '546035', 'Ngân hàng số Ubank by VPBank'],
  ['LIOBANK', '963369', 'Ngân hàng số Liobank by OCB'],
  ['TIMO', '963388', 'Ngân hàng số Timo by Bản Việt'],
  ['VTLMONEY', '971005', 'Viettel Money'],
  ['VNPTMONEY', '971011', 'VNPT Money'],
  ['momo', '971025', 'MoMo'],
  ['SGICB', '970400', 'Ngân hàng TMCP Sài Gòn Công thương'],
  ['BAB', '970409', 'Ngân hàng TMCP Bắc Á'],
  ['PVCB', '970412', 'Ngân hàng TMCP Đại chúng Việt Nam'],
  ['MBV', '970414', 'Ngân hàng TNHH MTV Việt Nam Hiện đại'],
  ['NCB', '970419', 'Ngân hàng TMCP Quốc dân'],
  ['SHBVN', '970424', 'Ngân hàng TNHH MTV Shinhan Việt Nam'],
  ['ABB', '970425', 'Ngân hàng TMCP An Bình'],
  ['VAB', '970427', 'Ngân hàng TMCP Việt Á'],
  ['NAB', '970428', 'Ngân hàng TMCP Nam Á'],
  ['PGB', '970430', 'Ngân hàng TMCP Thịnh vượng và Phát triển'],
  ['VIETBANK', '970433', 'Ngân hàng TMCP Việt Nam Thương Tín'],
  ['BVB', '970438', 'Ngân hàng TMCP Bảo Việt'],
  ['SEAB', '970440', 'Ngân hàng TMCP Đông Nam Á'],
  ['COOPBANK', '970446', 'Ngân hàng Hợp tác xã Việt Nam'],
  ['LPB', '970449', 'Ngân hàng TMCP Lộc Phát Việt Nam'],
  ['KLB', '970452', 'Ngân hàng TMCP Kiên Long'],
  ['KBank', '668888', 'Ngân hàng Đại chúng TNHH Kasikornbank'],
  ['KBHN', '970462', 'Ngân hàng Kookmin - Chi nhánh Hà Nội'],
  ['KBHCM', '970463', 'Ngân hàng Kookmin - Chi nhánh Thành phố Hồ Chí Minh'],
  ['KEBHANAHCM', '970466', 'Ngân hàng KEB Hana - Chi nhánh Thành phố Hồ Chí Minh'],
  ['KEBHANAHN', '970467', 'Ngân hàng KEB Hana - Chi nhánh Hà Nội'],
  ['MAFC', '977777', 'Công ty Tài chính TNHH MTV Mirae Asset (Việt Nam)'],
  ['CITIBANK', '533948', 'Ngân hàng Citibank, N.A. - Chi nhánh Hà Nội'],
  ['VBSP', '999888', 'Ngân hàng Chính sách Xã hội'],
  ['WVN', '970457', 'Ngân hàng TNHH MTV Woori Việt Nam'],
  ['VRB', '970421', 'Ngân hàng Liên doanh Việt - Nga'],
  ['UOB', '970458', 'Ngân hàng United Overseas Bank Việt Nam'],
  ['SCVN', '970410', 'Ngân hàng TNHH MTV Standard Chartered Việt Nam'],
  ['PBVN', '970439', 'Ngân hàng TNHH MTV Public Việt Nam'],
  ['NHB HN', '801011', 'Ngân hàng Nonghyup - Chi nhánh Hà Nội'],
  ['IVB', '970434', 'Ngân hàng TNHH Indovina'],
  ['IBK - HCM', '970456', 'Ngân hàng Công nghiệp Hàn Quốc - Chi nhánh Thành phố Hồ Chí Minh'],
  ['IBK - HN', '970455', 'Ngân hàng Công nghiệp Hàn Quốc - Chi nhánh Hà Nội'],
  ['HSBC', '458761', 'Ngân hàng TNHH MTV HSBC (Việt Nam)'],
  ['HLBVN', '970442', 'Ngân hàng TNHH MTV Hong Leong Việt Nam'],
  ['GPB', '970408', 'Ngân hàng TNHH MTV Dầu khí Toàn cầu'],
  ['Vikki', '970406', 'Ngân hàng TNHH MTV Số Vikki'],
  ['DBS', '796500', 'Ngân hàng DBS - Chi nhánh Thành phố Hồ Chí Minh'],
  ['CIMB', '422589', 'Ngân hàng TNHH MTV CIMB Việt Nam'],
  ['CBB', '970444', 'Ngân hàng TNHH MTV Xây dựng Việt Nam'],
];

export const BANKS: readonly Bank[] = TABLE.map(([code, bin, name]) => ({ code, bin, name }));

const byCodeOrBin: ReadonlyMap<string, Bank> = new Map(
  BANKS.flatMap((bank): [string, Bank][] => [
    [bank.code, bank],
    [bank.bin, bank],
  ]),
);

/**
 * Returns the bank of a bankCode (PROTOCOL.md, clause GEN-3): a short name as in the table, or a six-digit BIN. An
 * unknown BIN is accepted as a bank named by its BIN, because new banks appear faster than releases.
 */
export function findBank(bankCode: string): Bank | undefined {
  const known = byCodeOrBin.get(bankCode);
  if (known !== undefined) return known;
  return /^\d{6}$/.test(bankCode) ? { code: bankCode, bin: bankCode, name: bankCode } : undefined;
}
