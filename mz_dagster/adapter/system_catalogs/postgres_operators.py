"""Operators, casts, and how indexes order values: those that there are here, as in PostgreSQL 15's catalogs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

from mz_dagster.adapter.system_catalogs.of_types import ids_by_name
from mz_dagster.scalars.scalar import Value

if TYPE_CHECKING:
    from mz_dagster.adapter.system_catalogs.facts import Facts

Cells = Mapping[str, Value]
_PG_CATALOG_ID, _OWNER_ID, _BTREE_ID = 11, 10, 403

#: Each its object id, its name, the types of its operands and of its result (`-` for none), the object ids of its
#: commutator and negator and those of the functions that compute and estimate it; `m` if it merges, `h` if it hashes.
_OPERATORS = """
15;=;int4;int8;bool;416;36;852;101;105;mh 36;<>;int4;int8;bool;417;15;853;102;106;-
37;<;int4;int8;bool;419;82;854;103;107;- 58;<;bool;bool;bool;59;1695;56;103;107;-
59;>;bool;bool;bool;58;1694;57;104;108;- 76;>;int4;int8;bool;418;80;855;104;108;-
80;<=;int4;int8;bool;430;76;856;336;386;- 82;>=;int4;int8;bool;420;37;857;337;398;-
85;<>;bool;bool;bool;85;91;84;102;106;- 91;=;bool;bool;bool;91;85;60;101;105;mh
92;=;char;char;bool;92;630;61;101;105;mh 93;=;name;name;bool;93;643;62;101;105;mh
94;=;int2;int2;bool;94;519;63;101;105;mh 95;<;int2;int2;bool;520;524;64;103;107;-
96;=;int4;int4;bool;96;518;65;101;105;mh 97;<;int4;int4;bool;521;525;66;103;107;-
98;=;text;text;bool;98;531;67;101;105;mh 254;=;name;text;bool;260;259;240;101;105;mh
255;<;name;text;bool;264;257;241;103;107;- 256;<=;name;text;bool;263;258;242;336;386;-
257;>=;name;text;bool;262;255;243;337;398;- 258;>;name;text;bool;261;256;244;104;108;-
259;<>;name;text;bool;265;254;245;102;106;- 260;=;text;name;bool;254;265;247;101;105;mh
261;<;text;name;bool;258;263;248;103;107;- 262;<=;text;name;bool;257;264;249;336;386;-
263;>=;text;name;bool;256;261;250;337;398;- 264;>;text;name;bool;255;262;251;104;108;-
265;<>;text;name;bool;259;260;252;102;106;- 349;||;anycompatiblearray;anycompatible;anycompatiblearray;0;0;378;0;0;-
374;||;anycompatible;anycompatiblearray;anycompatiblearray;0;0;379;0;0;-
375;||;anycompatiblearray;anycompatiblearray;anycompatiblearray;0;0;383;0;0;-
410;=;int8;int8;bool;410;411;467;101;105;mh 411;<>;int8;int8;bool;411;410;468;102;106;-
412;<;int8;int8;bool;413;415;469;103;107;- 413;>;int8;int8;bool;412;414;470;104;108;-
414;<=;int8;int8;bool;415;413;471;336;386;- 415;>=;int8;int8;bool;414;412;472;337;398;-
416;=;int8;int4;bool;15;417;474;101;105;mh 417;<>;int8;int4;bool;36;416;475;102;106;-
418;<;int8;int4;bool;76;430;476;103;107;- 419;>;int8;int4;bool;37;420;477;104;108;-
420;<=;int8;int4;bool;82;419;478;336;386;- 430;>=;int8;int4;bool;80;418;479;337;398;-
439;%;int8;int8;int8;0;0;945;0;0;- 473;@;-;int8;int8;0;0;1230;0;0;- 484;-;-;int8;int8;0;0;462;0;0;-
514;*;int4;int4;int4;514;0;141;0;0;- 518;<>;int4;int4;bool;518;96;144;102;106;-
519;<>;int2;int2;bool;519;94;145;102;106;- 520;>;int2;int2;bool;95;522;146;104;108;-
521;>;int4;int4;bool;97;523;147;104;108;- 522;<=;int2;int2;bool;524;520;148;336;386;-
523;<=;int4;int4;bool;525;521;149;336;386;- 524;>=;int2;int2;bool;522;95;151;337;398;-
525;>=;int4;int4;bool;523;97;150;337;398;- 526;*;int2;int2;int2;526;0;152;0;0;- 527;/;int2;int2;int2;0;0;153;0;0;-
528;/;int4;int4;int4;0;0;154;0;0;- 529;%;int2;int2;int2;0;0;155;0;0;- 530;%;int4;int4;int4;0;0;156;0;0;-
531;<>;text;text;bool;531;98;157;102;106;- 532;=;int2;int4;bool;533;538;158;101;105;mh
533;=;int4;int2;bool;532;539;159;101;105;mh 534;<;int2;int4;bool;537;542;160;103;107;-
535;<;int4;int2;bool;536;543;161;103;107;- 536;>;int2;int4;bool;535;540;162;104;108;-
537;>;int4;int2;bool;534;541;163;104;108;- 538;<>;int2;int4;bool;539;532;164;102;106;-
539;<>;int4;int2;bool;538;533;165;102;106;- 540;<=;int2;int4;bool;543;536;166;336;386;-
541;<=;int4;int2;bool;542;537;167;336;386;- 542;>=;int2;int4;bool;541;534;168;337;398;-
543;>=;int4;int2;bool;540;535;169;337;398;- 544;*;int2;int4;int4;545;0;170;0;0;- 545;*;int4;int2;int4;544;0;171;0;0;-
546;/;int2;int4;int4;0;0;172;0;0;- 547;/;int4;int2;int4;0;0;173;0;0;- 550;+;int2;int2;int2;550;0;176;0;0;-
551;+;int4;int4;int4;551;0;177;0;0;- 552;+;int2;int4;int4;553;0;178;0;0;- 553;+;int4;int2;int4;552;0;179;0;0;-
554;-;int2;int2;int2;0;0;180;0;0;- 555;-;int4;int4;int4;0;0;181;0;0;- 556;-;int2;int4;int4;0;0;182;0;0;-
557;-;int4;int2;int4;0;0;183;0;0;- 558;-;-;int4;int4;0;0;212;0;0;- 559;-;-;int2;int2;0;0;213;0;0;-
584;-;-;float4;float4;0;0;206;0;0;- 585;-;-;float8;float8;0;0;220;0;0;- 586;+;float4;float4;float4;586;0;204;0;0;-
587;-;float4;float4;float4;0;0;205;0;0;- 588;/;float4;float4;float4;0;0;203;0;0;-
589;*;float4;float4;float4;589;0;202;0;0;- 590;@;-;float4;float4;0;0;207;0;0;-
591;+;float8;float8;float8;591;0;218;0;0;- 592;-;float8;float8;float8;0;0;219;0;0;-
593;/;float8;float8;float8;0;0;217;0;0;- 594;*;float8;float8;float8;594;0;216;0;0;-
595;@;-;float8;float8;0;0;221;0;0;- 596;|/;-;float8;float8;0;0;230;0;0;- 597;||/;-;float8;float8;0;0;231;0;0;-
607;=;oid;oid;bool;607;608;184;101;105;mh 608;<>;oid;oid;bool;608;607;185;102;106;-
609;<;oid;oid;bool;610;612;716;103;107;- 610;>;oid;oid;bool;609;611;1638;104;108;-
611;<=;oid;oid;bool;612;610;717;336;386;- 612;>=;oid;oid;bool;611;609;1639;337;398;-
620;=;float4;float4;bool;620;621;287;101;105;mh 621;<>;float4;float4;bool;621;620;288;102;106;-
622;<;float4;float4;bool;623;625;289;103;107;- 623;>;float4;float4;bool;622;624;291;104;108;-
624;<=;float4;float4;bool;625;623;290;336;386;- 625;>=;float4;float4;bool;624;622;292;337;398;-
630;<>;char;char;bool;630;92;70;102;106;- 631;<;char;char;bool;633;634;1246;103;107;-
632;<=;char;char;bool;634;633;72;336;386;- 633;>;char;char;bool;631;632;73;104;108;-
634;>=;char;char;bool;632;631;74;337;398;- 639;~;name;text;bool;0;640;79;1818;1824;-
640;!~;name;text;bool;0;639;1252;1821;1827;- 641;~;text;text;bool;0;642;1254;1818;1824;-
642;!~;text;text;bool;0;641;1256;1821;1827;- 643;<>;name;name;bool;643;93;659;102;106;-
654;||;text;text;text;0;0;1258;0;0;- 660;<;name;name;bool;662;663;655;103;107;-
661;<=;name;name;bool;663;662;656;336;386;- 662;>;name;name;bool;660;661;657;104;108;-
663;>=;name;name;bool;661;660;658;337;398;- 664;<;text;text;bool;666;667;740;103;107;-
665;<=;text;text;bool;667;666;741;336;386;- 666;>;text;text;bool;664;665;742;104;108;-
667;>=;text;text;bool;665;664;743;337;398;- 670;=;float8;float8;bool;670;671;293;101;105;mh
671;<>;float8;float8;bool;671;670;294;102;106;- 672;<;float8;float8;bool;674;675;295;103;107;-
673;<=;float8;float8;bool;675;674;296;336;386;- 674;>;float8;float8;bool;672;673;297;104;108;-
675;>=;float8;float8;bool;673;672;298;337;398;- 682;@;-;int2;int2;0;0;1253;0;0;- 684;+;int8;int8;int8;684;0;463;0;0;-
685;-;int8;int8;int8;0;0;464;0;0;- 686;*;int8;int8;int8;686;0;465;0;0;- 687;/;int8;int8;int8;0;0;466;0;0;-
688;+;int8;int4;int8;692;0;1274;0;0;- 689;-;int8;int4;int8;0;0;1275;0;0;- 690;*;int8;int4;int8;694;0;1276;0;0;-
691;/;int8;int4;int8;0;0;1277;0;0;- 692;+;int4;int8;int8;688;0;1278;0;0;- 693;-;int4;int8;int8;0;0;1279;0;0;-
694;*;int4;int8;int8;690;0;1280;0;0;- 695;/;int4;int8;int8;0;0;1281;0;0;- 773;@;-;int4;int4;0;0;1251;0;0;-
818;+;int8;int2;int8;822;0;837;0;0;- 819;-;int8;int2;int8;0;0;838;0;0;- 820;*;int8;int2;int8;824;0;839;0;0;-
821;/;int8;int2;int8;0;0;840;0;0;- 822;+;int2;int8;int8;818;0;841;0;0;- 823;-;int2;int8;int8;0;0;942;0;0;-
824;*;int2;int8;int8;820;0;943;0;0;- 825;/;int2;int8;int8;0;0;948;0;0;- 965;^;float8;float8;float8;0;0;232;0;0;-
1038;^;numeric;numeric;numeric;0;0;1739;0;0;- 1054;=;bpchar;bpchar;bool;1054;1057;1048;101;105;mh
1055;~;bpchar;text;bool;0;1056;1658;1818;1824;- 1056;!~;bpchar;text;bool;0;1055;1659;1821;1827;-
1057;<>;bpchar;bpchar;bool;1057;1054;1053;102;106;- 1058;<;bpchar;bpchar;bool;1060;1061;1049;103;107;-
1059;<=;bpchar;bpchar;bool;1061;1060;1050;336;386;- 1060;>;bpchar;bpchar;bool;1058;1059;1051;104;108;-
1061;>=;bpchar;bpchar;bool;1059;1058;1052;337;398;- 1070;=;anyarray;anyarray;bool;1070;1071;744;101;105;mh
1071;<>;anyarray;anyarray;bool;1071;1070;390;102;106;- 1072;<;anyarray;anyarray;bool;1073;1075;391;103;107;-
1073;>;anyarray;anyarray;bool;1072;1074;392;104;108;- 1074;<=;anyarray;anyarray;bool;1075;1073;393;336;386;-
1075;>=;anyarray;anyarray;bool;1074;1072;396;337;398;- 1076;+;date;interval;timestamp;2551;0;2071;0;0;-
1077;-;date;interval;timestamp;0;0;2072;0;0;- 1093;=;date;date;bool;1093;1094;1086;101;105;mh
1094;<>;date;date;bool;1094;1093;1091;102;106;- 1095;<;date;date;bool;1097;1098;1087;103;107;-
1096;<=;date;date;bool;1098;1097;1088;336;386;- 1097;>;date;date;bool;1095;1096;1089;104;108;-
1098;>=;date;date;bool;1096;1095;1090;337;398;- 1099;-;date;date;int4;0;0;1140;0;0;-
1100;+;date;int4;date;2555;0;1141;0;0;- 1101;-;date;int4;date;0;0;1142;0;0;-
1108;=;time;time;bool;1108;1109;1145;101;105;mh 1109;<>;time;time;bool;1109;1108;1106;102;106;-
1110;<;time;time;bool;1112;1113;1102;103;107;- 1111;<=;time;time;bool;1113;1112;1103;336;386;-
1112;>;time;time;bool;1110;1111;1104;104;108;- 1113;>=;time;time;bool;1111;1110;1105;337;398;-
1116;+;float4;float8;float8;1126;0;281;0;0;- 1117;-;float4;float8;float8;0;0;282;0;0;-
1118;/;float4;float8;float8;0;0;280;0;0;- 1119;*;float4;float8;float8;1129;0;279;0;0;-
1120;=;float4;float8;bool;1130;1121;299;101;105;mh 1121;<>;float4;float8;bool;1131;1120;300;102;106;-
1122;<;float4;float8;bool;1133;1125;301;103;107;- 1123;>;float4;float8;bool;1132;1124;303;104;108;-
1124;<=;float4;float8;bool;1135;1123;302;336;386;- 1125;>=;float4;float8;bool;1134;1122;304;337;398;-
1126;+;float8;float4;float8;1116;0;285;0;0;- 1127;-;float8;float4;float8;0;0;286;0;0;-
1128;/;float8;float4;float8;0;0;284;0;0;- 1129;*;float8;float4;float8;1119;0;283;0;0;-
1130;=;float8;float4;bool;1120;1131;305;101;105;mh 1131;<>;float8;float4;bool;1121;1130;306;102;106;-
1132;<;float8;float4;bool;1123;1135;307;103;107;- 1133;>;float8;float4;bool;1122;1134;309;104;108;-
1134;<=;float8;float4;bool;1125;1133;308;336;386;- 1135;>=;float8;float4;bool;1124;1132;310;337;398;-
1207;~~;name;text;bool;0;1208;858;1819;1825;- 1208;!~~;name;text;bool;0;1207;859;1822;1828;-
1209;~~;text;text;bool;0;1210;850;1819;1825;- 1210;!~~;text;text;bool;0;1209;851;1822;1828;-
1211;~~;bpchar;text;bool;0;1212;1631;1819;1825;- 1212;!~~;bpchar;text;bool;0;1211;1632;1822;1828;-
1226;~*;name;text;bool;0;1227;1240;1820;1826;- 1227;!~*;name;text;bool;0;1226;1241;1823;1829;-
1228;~*;text;text;bool;0;1229;1238;1820;1826;- 1229;!~*;text;text;bool;0;1228;1239;1823;1829;-
1234;~*;bpchar;text;bool;0;1235;1656;1820;1826;- 1235;!~*;bpchar;text;bool;0;1234;1657;1823;1829;-
1320;=;timestamptz;timestamptz;bool;1320;1321;1152;101;105;mh
1321;<>;timestamptz;timestamptz;bool;1321;1320;1153;102;106;-
1322;<;timestamptz;timestamptz;bool;1324;1325;1154;103;107;-
1323;<=;timestamptz;timestamptz;bool;1325;1324;1155;336;386;-
1324;>;timestamptz;timestamptz;bool;1322;1323;1157;104;108;-
1325;>=;timestamptz;timestamptz;bool;1323;1322;1156;337;398;-
1327;+;timestamptz;interval;timestamptz;2554;0;1189;0;0;- 1328;-;timestamptz;timestamptz;interval;0;0;1188;0;0;-
1329;-;timestamptz;interval;timestamptz;0;0;1190;0;0;- 1330;=;interval;interval;bool;1330;1331;1162;101;105;mh
1331;<>;interval;interval;bool;1331;1330;1163;102;106;- 1332;<;interval;interval;bool;1334;1335;1164;103;107;-
1333;<=;interval;interval;bool;1335;1334;1165;336;386;- 1334;>;interval;interval;bool;1332;1333;1167;104;108;-
1335;>=;interval;interval;bool;1333;1332;1166;337;398;- 1336;-;-;interval;interval;0;0;1168;0;0;-
1337;+;interval;interval;interval;1337;0;1169;0;0;- 1338;-;interval;interval;interval;0;0;1170;0;0;-
1360;+;date;time;timestamp;1363;0;1272;0;0;- 1361;+;date;timetz;timestamptz;1366;0;1297;0;0;-
1363;+;time;date;timestamp;1360;0;1296;0;0;- 1366;+;timetz;date;timestamptz;1361;0;1298;0;0;-
1399;-;time;time;interval;0;0;1690;0;0;- 1550;=;timetz;timetz;bool;1550;1551;1352;101;105;mh
1551;<>;timetz;timetz;bool;1551;1550;1353;102;106;- 1552;<;timetz;timetz;bool;1554;1555;1354;103;107;-
1553;<=;timetz;timetz;bool;1555;1554;1355;336;386;- 1554;>;timetz;timetz;bool;1552;1553;1357;104;108;-
1555;>=;timetz;timetz;bool;1553;1552;1356;337;398;- 1583;*;interval;float8;interval;1584;0;1618;0;0;-
1584;*;float8;interval;interval;1583;0;1624;0;0;- 1585;/;interval;float8;interval;0;0;1326;0;0;-
1625;~~*;name;text;bool;0;1626;1635;1814;1816;- 1626;!~~*;name;text;bool;0;1625;1636;1815;1817;-
1627;~~*;text;text;bool;0;1628;1633;1814;1816;- 1628;!~~*;text;text;bool;0;1627;1634;1815;1817;-
1629;~~*;bpchar;text;bool;0;1630;1660;1814;1816;- 1630;!~~*;bpchar;text;bool;0;1629;1661;1815;1817;-
1694;<=;bool;bool;bool;1695;59;1691;336;386;- 1695;>=;bool;bool;bool;1694;58;1692;337;398;-
1751;-;-;numeric;numeric;0;0;1771;0;0;- 1752;=;numeric;numeric;bool;1752;1753;1718;101;105;mh
1753;<>;numeric;numeric;bool;1753;1752;1719;102;106;- 1754;<;numeric;numeric;bool;1756;1757;1722;103;107;-
1755;<=;numeric;numeric;bool;1757;1756;1723;336;386;- 1756;>;numeric;numeric;bool;1754;1755;1720;104;108;-
1757;>=;numeric;numeric;bool;1755;1754;1721;337;398;- 1758;+;numeric;numeric;numeric;1758;0;1724;0;0;-
1759;-;numeric;numeric;numeric;0;0;1725;0;0;- 1760;*;numeric;numeric;numeric;1760;0;1726;0;0;-
1761;/;numeric;numeric;numeric;0;0;1727;0;0;- 1762;%;numeric;numeric;numeric;0;0;1729;0;0;-
1763;@;-;numeric;numeric;0;0;1704;0;0;- 1800;+;time;interval;time;1849;0;1747;0;0;-
1801;-;time;interval;time;0;0;1748;0;0;- 1802;+;timetz;interval;timetz;2552;0;1749;0;0;-
1803;-;timetz;interval;timetz;0;0;1750;0;0;- 1849;+;interval;time;time;1800;0;1848;0;0;-
1862;=;int2;int8;bool;1868;1863;1850;101;105;mh 1863;<>;int2;int8;bool;1869;1862;1851;102;106;-
1864;<;int2;int8;bool;1871;1867;1852;103;107;- 1865;>;int2;int8;bool;1870;1866;1853;104;108;-
1866;<=;int2;int8;bool;1873;1865;1854;336;386;- 1867;>=;int2;int8;bool;1872;1864;1855;337;398;-
1868;=;int8;int2;bool;1862;1869;1856;101;105;mh 1869;<>;int8;int2;bool;1863;1868;1857;102;106;-
1870;<;int8;int2;bool;1865;1873;1858;103;107;- 1871;>;int8;int2;bool;1864;1872;1859;104;108;-
1872;<=;int8;int2;bool;1867;1871;1860;336;386;- 1873;>=;int8;int2;bool;1866;1870;1861;337;398;-
1874;&;int2;int2;int2;1874;0;1892;0;0;- 1875;|;int2;int2;int2;1875;0;1893;0;0;-
1876;#;int2;int2;int2;1876;0;1894;0;0;- 1877;~;-;int2;int2;0;0;1895;0;0;- 1878;<<;int2;int4;int2;0;0;1896;0;0;-
1879;>>;int2;int4;int2;0;0;1897;0;0;- 1880;&;int4;int4;int4;1880;0;1898;0;0;- 1881;|;int4;int4;int4;1881;0;1899;0;0;-
1882;#;int4;int4;int4;1882;0;1900;0;0;- 1883;~;-;int4;int4;0;0;1901;0;0;- 1884;<<;int4;int4;int4;0;0;1902;0;0;-
1885;>>;int4;int4;int4;0;0;1903;0;0;- 1886;&;int8;int8;int8;1886;0;1904;0;0;- 1887;|;int8;int8;int8;1887;0;1905;0;0;-
1888;#;int8;int8;int8;1888;0;1906;0;0;- 1889;~;-;int8;int8;0;0;1907;0;0;- 1890;<<;int8;int4;int8;0;0;1908;0;0;-
1891;>>;int8;int4;int8;0;0;1909;0;0;- 1916;+;-;int8;int8;0;0;1910;0;0;- 1917;+;-;int2;int2;0;0;1911;0;0;-
1918;+;-;int4;int4;0;0;1912;0;0;- 1919;+;-;float4;float4;0;0;1913;0;0;- 1920;+;-;float8;float8;0;0;1914;0;0;-
1921;+;-;numeric;numeric;0;0;1915;0;0;- 1955;=;bytea;bytea;bool;1955;1956;1948;101;105;mh
1956;<>;bytea;bytea;bool;1956;1955;1953;102;106;- 1957;<;bytea;bytea;bool;1959;1960;1949;103;107;-
1958;<=;bytea;bytea;bool;1960;1959;1950;336;386;- 1959;>;bytea;bytea;bool;1957;1958;1951;104;108;-
1960;>=;bytea;bytea;bool;1958;1957;1952;337;398;- 2018;||;bytea;bytea;bytea;0;0;2011;0;0;-
2060;=;timestamp;timestamp;bool;2060;2061;2052;101;105;mh 2061;<>;timestamp;timestamp;bool;2061;2060;2053;102;106;-
2062;<;timestamp;timestamp;bool;2064;2065;2054;103;107;- 2063;<=;timestamp;timestamp;bool;2065;2064;2055;336;386;-
2064;>;timestamp;timestamp;bool;2062;2063;2057;104;108;- 2065;>=;timestamp;timestamp;bool;2063;2062;2056;337;398;-
2066;+;timestamp;interval;timestamp;2553;0;2032;0;0;- 2067;-;timestamp;timestamp;interval;0;0;2031;0;0;-
2068;-;timestamp;interval;timestamp;0;0;2033;0;0;- 2345;<;date;timestamp;bool;2375;2348;2338;103;107;-
2346;<=;date;timestamp;bool;2374;2349;2339;336;386;- 2347;=;date;timestamp;bool;2373;2350;2340;101;105;m
2348;>=;date;timestamp;bool;2372;2345;2342;337;398;- 2349;>;date;timestamp;bool;2371;2346;2341;104;108;-
2350;<>;date;timestamp;bool;2376;2347;2343;102;106;- 2358;<;date;timestamptz;bool;2388;2361;2351;103;107;-
2359;<=;date;timestamptz;bool;2387;2362;2352;336;386;- 2360;=;date;timestamptz;bool;2386;2363;2353;101;105;m
2361;>=;date;timestamptz;bool;2385;2358;2355;337;398;- 2362;>;date;timestamptz;bool;2384;2359;2354;104;108;-
2363;<>;date;timestamptz;bool;2389;2360;2356;102;106;- 2371;<;timestamp;date;bool;2349;2374;2364;103;107;-
2372;<=;timestamp;date;bool;2348;2375;2365;336;386;- 2373;=;timestamp;date;bool;2347;2376;2366;101;105;m
2374;>=;timestamp;date;bool;2346;2371;2368;337;398;- 2375;>;timestamp;date;bool;2345;2372;2367;104;108;-
2376;<>;timestamp;date;bool;2350;2373;2369;102;106;- 2384;<;timestamptz;date;bool;2362;2387;2377;103;107;-
2385;<=;timestamptz;date;bool;2361;2388;2378;336;386;- 2386;=;timestamptz;date;bool;2360;2389;2379;101;105;m
2387;>=;timestamptz;date;bool;2359;2384;2381;337;398;- 2388;>;timestamptz;date;bool;2358;2385;2380;104;108;-
2389;<>;timestamptz;date;bool;2363;2386;2382;102;106;- 2534;<;timestamp;timestamptz;bool;2544;2537;2520;103;107;-
2535;<=;timestamp;timestamptz;bool;2543;2538;2521;336;386;- 2536;=;timestamp;timestamptz;bool;2542;2539;2522;101;105;m
2537;>=;timestamp;timestamptz;bool;2541;2534;2524;337;398;- 2538;>;timestamp;timestamptz;bool;2540;2535;2523;104;108;-
2539;<>;timestamp;timestamptz;bool;2545;2536;2525;102;106;- 2540;<;timestamptz;timestamp;bool;2538;2543;2527;103;107;-
2541;<=;timestamptz;timestamp;bool;2537;2544;2528;336;386;- 2542;=;timestamptz;timestamp;bool;2536;2545;2529;101;105;m
2543;>=;timestamptz;timestamp;bool;2535;2540;2531;337;398;- 2544;>;timestamptz;timestamp;bool;2534;2541;2530;104;108;-
2545;<>;timestamptz;timestamp;bool;2539;2542;2532;102;106;- 2551;+;interval;date;timestamp;1076;0;2546;0;0;-
2552;+;interval;timetz;timetz;1802;0;2547;0;0;- 2553;+;interval;timestamp;timestamp;2066;0;2548;0;0;-
2554;+;interval;timestamptz;timestamptz;1327;0;2549;0;0;- 2555;+;int4;date;date;1100;0;2550;0;0;-
2750;&&;anyarray;anyarray;bool;2750;0;2747;3817;3818;- 2751;@>;anyarray;anyarray;bool;2752;0;2748;3817;3818;-
2752;<@;anyarray;anyarray;bool;2751;0;2749;3817;3818;- 2972;=;uuid;uuid;bool;2972;2973;2956;101;105;mh
2973;<>;uuid;uuid;bool;2973;2972;2959;102;106;- 2974;<;uuid;uuid;bool;2975;2977;2954;103;107;-
2975;>;uuid;uuid;bool;2974;2976;2958;104;108;- 2976;<=;uuid;uuid;bool;2977;2975;2955;336;386;-
2977;>=;uuid;uuid;bool;2976;2974;2957;337;398;- 2988;=;record;record;bool;2988;2989;2981;101;105;mh
2989;<>;record;record;bool;2989;2988;2982;102;106;- 2990;<;record;record;bool;2991;2993;2983;103;107;-
2991;>;record;record;bool;2990;2992;2984;104;108;- 2992;<=;record;record;bool;2993;2991;2985;336;386;-
2993;>=;record;record;bool;2992;2990;2986;337;398;- 3206;#>>;jsonb;_text;text;0;0;3940;0;0;-
3211;->;jsonb;text;jsonb;0;0;3478;0;0;- 3212;->;jsonb;int4;jsonb;0;0;3215;0;0;-
3213;#>;jsonb;_text;jsonb;0;0;3217;0;0;- 3240;=;jsonb;jsonb;bool;3240;3241;4043;101;105;mh
3241;<>;jsonb;jsonb;bool;3241;3240;4038;102;106;- 3242;<;jsonb;jsonb;bool;3243;3245;4039;103;107;-
3243;>;jsonb;jsonb;bool;3242;3244;4040;104;108;- 3244;<=;jsonb;jsonb;bool;3245;3243;4041;336;386;-
3245;>=;jsonb;jsonb;bool;3244;3242;4042;337;398;- 3246;@>;jsonb;jsonb;bool;3250;0;4046;5040;5041;-
3247;?;jsonb;text;bool;0;0;4047;5040;5041;- 3248;?|;jsonb;_text;bool;0;0;4048;5040;5041;-
3249;?&;jsonb;_text;bool;0;0;4049;5040;5041;- 3250;<@;jsonb;jsonb;bool;3246;0;4050;5040;5041;-
3284;||;jsonb;jsonb;jsonb;0;0;3301;0;0;- 3285;-;jsonb;text;jsonb;0;0;3302;0;0;- 3286;-;jsonb;int4;jsonb;0;0;3303;0;0;-
3287;#-;jsonb;_text;jsonb;0;0;3304;0;0;- 3398;-;jsonb;_text;jsonb;0;0;3343;0;0;-
3477;->>;jsonb;text;text;0;0;3214;0;0;- 3481;->>;jsonb;int4;text;0;0;3216;0;0;-
3516;=;anyenum;anyenum;bool;3516;3517;3508;101;105;mh 3517;<>;anyenum;anyenum;bool;3517;3516;3509;102;106;-
3518;<;anyenum;anyenum;bool;3519;3521;3510;103;107;- 3519;>;anyenum;anyenum;bool;3518;3520;3511;104;108;-
3520;<=;anyenum;anyenum;bool;3521;3519;3512;336;386;- 3521;>=;anyenum;anyenum;bool;3520;3518;3513;337;398;-
3877;^@;text;text;bool;0;0;3696;3437;3438;- 3962;->;json;text;json;0;0;3947;0;0;-
3963;->>;json;text;text;0;0;3948;0;0;- 3964;->;json;int4;json;0;0;3949;0;0;- 3965;->>;json;int4;text;0;0;3950;0;0;-
3966;#>;json;_text;json;0;0;3951;0;0;- 3967;#>>;json;_text;text;0;0;3953;0;0;-
"""

#: Each the types from and to which, its object id, that of its function, its context and its method.
_CASTS = """
bool:int4:10035:2558:ef bool:text:10191:2971:af bool:bpchar:10201:2971:af bool:varchar:10196:2971:af
char:int4:10143:77:ef char:text:10131:946:if char:bpchar:10132:860:af char:varchar:10133:946:af name:text:10134:406:if
name:bpchar:10135:408:af name:varchar:10136:1401:af int8:int2:10000:714:af int8:int4:10001:480:af
int8:oid:10037:1287:if int8:float4:10002:652:if int8:float8:10003:482:if int8:numeric:10004:1781:if
int2:int8:10005:754:if int2:int4:10006:313:if int2:oid:10038:313:if int2:float4:10007:236:if int2:float8:10008:235:if
int2:numeric:10009:1782:if int4:bool:10034:2557:ef int4:char:10144:78:ef int4:int8:10010:481:if int4:int2:10011:314:af
int4:oid:10039:0:ib int4:float4:10012:318:if int4:float8:10013:316:if int4:numeric:10014:1740:if
text:char:10137:944:af text:name:10140:407:if text:bpchar:10125:0:ib text:varchar:10126:0:ib oid:int8:10040:1288:af
oid:int4:10041:0:ab json:jsonb:10214:0:ai float4:int8:10015:653:af float4:int2:10016:238:af float4:int4:10017:319:af
float4:float8:10018:311:if float4:numeric:10019:1742:af float8:int8:10020:483:af float8:int2:10021:237:af
float8:int4:10022:317:af float8:float4:10023:312:af float8:numeric:10024:1743:af bpchar:char:10138:944:af
bpchar:name:10141:409:if bpchar:text:10127:401:if bpchar:bpchar:10204:668:if bpchar:varchar:10128:401:if
varchar:char:10139:944:af varchar:name:10142:1400:if varchar:text:10129:0:ib varchar:bpchar:10130:0:ib
varchar:varchar:10205:669:if date:timestamp:10152:2024:if date:timestamptz:10153:1174:if time:time:10206:1968:if
time:interval:10154:1370:if time:timetz:10155:2047:if timestamp:date:10156:2029:af timestamp:time:10157:1316:af
timestamp:timestamp:10207:1961:if timestamp:timestamptz:10158:2028:if timestamptz:date:10159:1178:af
timestamptz:time:10160:2019:af timestamptz:timestamp:10161:2027:af timestamptz:timestamptz:10208:1967:if
timestamptz:timetz:10162:1388:af interval:time:10163:1419:af interval:interval:10209:1200:if timetz:time:10164:2046:af
timetz:timetz:10210:1969:if numeric:int8:10025:1779:af numeric:int2:10026:1783:af numeric:int4:10027:1744:af
numeric:float4:10028:1745:if numeric:float8:10029:1746:if numeric:numeric:10213:1703:if jsonb:bool:10216:3556:ef
jsonb:int8:10220:3452:ef jsonb:int2:10218:3450:ef jsonb:int4:10219:3451:ef jsonb:json:10215:0:ai
jsonb:float4:10221:3453:ef jsonb:float8:10222:2580:ef jsonb:numeric:10217:3449:ef
"""

#: Families of operators of B-trees: object id and name.
_FAMILIES = """
397:array_ops 424:bool_ops 426:bpchar_ops 428:bytea_ops 429:char_ops 434:datetime_ops 1970:float_ops 1976:integer_ops
1982:interval_ops 1988:numeric_ops 1989:oid_ops 1994:text_ops 1996:time_ops 2000:timetz_ops 2968:uuid_ops
2994:record_ops 3522:enum_ops 4033:jsonb_ops
"""

#: Classes in them: object id, name, family, type, the type of what is kept (`-` for the same), `d` of the default.
_CLASSES = """
10000:array_ops:397:anyarray:-:d 10003:bool_ops:424:bool:-:d 10004:bpchar_ops:426:bpchar:-:d
10006:bytea_ops:428:bytea:-:d 10007:char_ops:429:char:-:d 3122:date_ops:434:date:-:d 10069:enum_ops:3522:anyenum:-:d
10012:float4_ops:1970:float4:-:d 3123:float8_ops:1970:float8:-:d 1979:int2_ops:1976:int2:-:d
1978:int4_ops:1976:int4:-:d 3124:int8_ops:1976:int8:-:d 10022:interval_ops:1982:interval:-:d
10088:jsonb_ops:4033:jsonb:-:d 10028:name_ops:1994:name:cstring:d 3125:numeric_ops:1988:numeric:-:d
1981:oid_ops:1989:oid:-:d 10034:record_ops:2994:record:-:d 3126:text_ops:1994:text:-:d 10038:time_ops:1996:time:-:d
3128:timestamp_ops:434:timestamp:-:d 3127:timestamptz_ops:434:timestamptz:-:d 10041:timetz_ops:2000:timetz:-:d
10065:uuid_ops:2968:uuid:-:d 10044:varchar_ops:1994:text:-:-
"""

#: Their operators: object id, family, types of the operands, place in the order, the operator's object id.
_FAMILY_OPERATORS = """
10230:397:anyarray:anyarray:1:1072 10231:397:anyarray:anyarray:2:1074 10232:397:anyarray:anyarray:3:1070
10233:397:anyarray:anyarray:4:1075 10234:397:anyarray:anyarray:5:1073 10200:424:bool:bool:1:58
10201:424:bool:bool:2:1694 10202:424:bool:bool:3:91 10203:424:bool:bool:4:1695 10204:424:bool:bool:5:59
10110:426:bpchar:bpchar:1:1058 10111:426:bpchar:bpchar:2:1059 10112:426:bpchar:bpchar:3:1054
10113:426:bpchar:bpchar:4:1061 10114:426:bpchar:bpchar:5:1060 10115:428:bytea:bytea:1:1957
10116:428:bytea:bytea:2:1958 10117:428:bytea:bytea:3:1955 10118:428:bytea:bytea:4:1960 10119:428:bytea:bytea:5:1959
10085:429:char:char:1:631 10086:429:char:char:2:632 10087:429:char:char:3:92 10088:429:char:char:4:634
10089:429:char:char:5:633 10120:434:date:date:1:1095 10121:434:date:date:2:1096 10122:434:date:date:3:1093
10123:434:date:date:4:1098 10124:434:date:date:5:1097 10125:434:date:timestamp:1:2345 10126:434:date:timestamp:2:2346
10127:434:date:timestamp:3:2347 10128:434:date:timestamp:4:2348 10129:434:date:timestamp:5:2349
10130:434:date:timestamptz:1:2358 10131:434:date:timestamptz:2:2359 10132:434:date:timestamptz:3:2360
10133:434:date:timestamptz:4:2361 10134:434:date:timestamptz:5:2362 10140:434:timestamp:date:1:2371
10141:434:timestamp:date:2:2372 10142:434:timestamp:date:3:2373 10143:434:timestamp:date:4:2374
10144:434:timestamp:date:5:2375 10135:434:timestamp:timestamp:1:2062 10136:434:timestamp:timestamp:2:2063
10137:434:timestamp:timestamp:3:2060 10138:434:timestamp:timestamp:4:2065 10139:434:timestamp:timestamp:5:2064
10145:434:timestamp:timestamptz:1:2534 10146:434:timestamp:timestamptz:2:2535 10147:434:timestamp:timestamptz:3:2536
10148:434:timestamp:timestamptz:4:2537 10149:434:timestamp:timestamptz:5:2538 10155:434:timestamptz:date:1:2384
10156:434:timestamptz:date:2:2385 10157:434:timestamptz:date:3:2386 10158:434:timestamptz:date:4:2387
10159:434:timestamptz:date:5:2388 10160:434:timestamptz:timestamp:1:2540 10161:434:timestamptz:timestamp:2:2541
10162:434:timestamptz:timestamp:3:2542 10163:434:timestamptz:timestamp:4:2543 10164:434:timestamptz:timestamp:5:2544
10150:434:timestamptz:timestamptz:1:1322 10151:434:timestamptz:timestamptz:2:1323
10152:434:timestamptz:timestamptz:3:1320 10153:434:timestamptz:timestamptz:4:1325
10154:434:timestamptz:timestamptz:5:1324 10065:1970:float4:float4:1:622 10066:1970:float4:float4:2:624
10067:1970:float4:float4:3:620 10068:1970:float4:float4:4:625 10069:1970:float4:float4:5:623
10070:1970:float4:float8:1:1122 10071:1970:float4:float8:2:1124 10072:1970:float4:float8:3:1120
10073:1970:float4:float8:4:1125 10074:1970:float4:float8:5:1123 10080:1970:float8:float4:1:1132
10081:1970:float8:float4:2:1134 10082:1970:float8:float4:3:1130 10083:1970:float8:float4:4:1135
10084:1970:float8:float4:5:1133 10075:1970:float8:float8:1:672 10076:1970:float8:float8:2:673
10077:1970:float8:float8:3:670 10078:1970:float8:float8:4:675 10079:1970:float8:float8:5:674
10030:1976:int8:int8:1:412 10031:1976:int8:int8:2:414 10032:1976:int8:int8:3:410 10033:1976:int8:int8:4:415
10034:1976:int8:int8:5:413 10035:1976:int8:int2:1:1870 10036:1976:int8:int2:2:1872 10037:1976:int8:int2:3:1868
10038:1976:int8:int2:4:1873 10039:1976:int8:int2:5:1871 10040:1976:int8:int4:1:418 10041:1976:int8:int4:2:420
10042:1976:int8:int4:3:416 10043:1976:int8:int4:4:430 10044:1976:int8:int4:5:419 10010:1976:int2:int8:1:1864
10011:1976:int2:int8:2:1866 10012:1976:int2:int8:3:1862 10013:1976:int2:int8:4:1867 10014:1976:int2:int8:5:1865
10000:1976:int2:int2:1:95 10001:1976:int2:int2:2:522 10002:1976:int2:int2:3:94 10003:1976:int2:int2:4:524
10004:1976:int2:int2:5:520 10005:1976:int2:int4:1:534 10006:1976:int2:int4:2:540 10007:1976:int2:int4:3:532
10008:1976:int2:int4:4:542 10009:1976:int2:int4:5:536 10025:1976:int4:int8:1:37 10026:1976:int4:int8:2:80
10027:1976:int4:int8:3:15 10028:1976:int4:int8:4:82 10029:1976:int4:int8:5:76 10020:1976:int4:int2:1:535
10021:1976:int4:int2:2:541 10022:1976:int4:int2:3:533 10023:1976:int4:int2:4:543 10024:1976:int4:int2:5:537
10015:1976:int4:int4:1:97 10016:1976:int4:int4:2:523 10017:1976:int4:int4:3:96 10018:1976:int4:int4:4:525
10019:1976:int4:int4:5:521 10175:1982:interval:interval:1:1332 10176:1982:interval:interval:2:1333
10177:1982:interval:interval:3:1330 10178:1982:interval:interval:4:1335 10179:1982:interval:interval:5:1334
10195:1988:numeric:numeric:1:1754 10196:1988:numeric:numeric:2:1755 10197:1988:numeric:numeric:3:1752
10198:1988:numeric:numeric:4:1757 10199:1988:numeric:numeric:5:1756 10045:1989:oid:oid:1:609 10046:1989:oid:oid:2:611
10047:1989:oid:oid:3:607 10048:1989:oid:oid:4:612 10049:1989:oid:oid:5:610 10095:1994:name:name:1:660
10096:1994:name:name:2:661 10097:1994:name:name:3:93 10098:1994:name:name:4:663 10099:1994:name:name:5:662
10100:1994:name:text:1:255 10101:1994:name:text:2:256 10102:1994:name:text:3:254 10103:1994:name:text:4:257
10104:1994:name:text:5:258 10105:1994:text:name:1:261 10106:1994:text:name:2:262 10107:1994:text:name:3:260
10108:1994:text:name:4:263 10109:1994:text:name:5:264 10090:1994:text:text:1:664 10091:1994:text:text:2:665
10092:1994:text:text:3:98 10093:1994:text:text:4:667 10094:1994:text:text:5:666 10165:1996:time:time:1:1110
10166:1996:time:time:2:1111 10167:1996:time:time:3:1108 10168:1996:time:time:4:1113 10169:1996:time:time:5:1112
10170:2000:timetz:timetz:1:1552 10171:2000:timetz:timetz:2:1553 10172:2000:timetz:timetz:3:1550
10173:2000:timetz:timetz:4:1555 10174:2000:timetz:timetz:5:1554 10245:2968:uuid:uuid:1:2974
10246:2968:uuid:uuid:2:2976 10247:2968:uuid:uuid:3:2972 10248:2968:uuid:uuid:4:2977 10249:2968:uuid:uuid:5:2975
10235:2994:record:record:1:2990 10236:2994:record:record:2:2992 10237:2994:record:record:3:2988
10238:2994:record:record:4:2993 10239:2994:record:record:5:2991 10353:3522:anyenum:anyenum:1:3518
10354:3522:anyenum:anyenum:2:3520 10355:3522:anyenum:anyenum:3:3516 10356:3522:anyenum:anyenum:4:3521
10357:3522:anyenum:anyenum:5:3519 10450:4033:jsonb:jsonb:1:3242 10451:4033:jsonb:jsonb:2:3244
10452:4033:jsonb:jsonb:3:3240 10453:4033:jsonb:jsonb:4:3245 10454:4033:jsonb:jsonb:5:3243
"""

#: Their functions, likewise.
_FAMILY_FUNCTIONS = """
10000:397:anyarray:anyarray:1:382 10003:424:bool:bool:1:1693 10004:424:bool:bool:4:5051 10005:426:bpchar:bpchar:1:1078
10006:426:bpchar:bpchar:2:3328 10007:426:bpchar:bpchar:4:5050 10008:428:bytea:bytea:1:1954
10009:428:bytea:bytea:2:3331 10010:428:bytea:bytea:4:5051 10011:429:char:char:1:358 10012:429:char:char:4:5051
10013:434:date:date:1:1092 10014:434:date:date:2:3136 10015:434:date:date:4:5051 10016:434:date:timestamp:1:2344
10017:434:date:timestamptz:1:2357 10021:434:timestamp:date:1:2370 10018:434:timestamp:timestamp:1:2045
10019:434:timestamp:timestamp:2:3137 10020:434:timestamp:timestamp:4:5051 10022:434:timestamp:timestamptz:1:2526
10026:434:timestamptz:date:1:2383 10027:434:timestamptz:timestamp:1:2533 10023:434:timestamptz:timestamptz:1:1314
10024:434:timestamptz:timestamptz:2:3137 10025:434:timestamptz:timestamptz:4:5051 10031:1970:float4:float4:1:354
10032:1970:float4:float4:2:3132 10033:1970:float4:float8:1:2194 10038:1970:float4:float8:3:4140
10036:1970:float8:float4:1:2195 10034:1970:float8:float8:1:355 10035:1970:float8:float8:2:3133
10037:1970:float8:float8:3:4139 10058:1976:int8:int8:1:842 10059:1976:int8:int8:2:3131 10063:1976:int8:int8:3:4126
10060:1976:int8:int8:4:5051 10062:1976:int8:int2:1:2193 10061:1976:int8:int4:1:2189 10046:1976:int2:int8:1:2192
10047:1976:int2:int8:3:4130 10042:1976:int2:int2:1:350 10043:1976:int2:int2:2:3129 10049:1976:int2:int2:3:4132
10044:1976:int2:int2:4:5051 10045:1976:int2:int4:1:2190 10048:1976:int2:int4:3:4131 10053:1976:int4:int8:1:2188
10055:1976:int4:int8:3:4127 10054:1976:int4:int2:1:2191 10057:1976:int4:int2:3:4129 10050:1976:int4:int4:1:351
10051:1976:int4:int4:2:3130 10056:1976:int4:int4:3:4128 10052:1976:int4:int4:4:5051
10064:1982:interval:interval:1:1315 10065:1982:interval:interval:3:4136 10069:1988:numeric:numeric:1:1769
10070:1988:numeric:numeric:2:3283 10071:1988:numeric:numeric:3:4141 10072:1989:oid:oid:1:356 10073:1989:oid:oid:2:3134
10074:1989:oid:oid:4:5051 10080:1994:name:name:1:359 10081:1994:name:name:2:3135 10082:1994:name:name:4:5050
10083:1994:name:text:1:246 10084:1994:text:name:1:253 10077:1994:text:text:1:360 10078:1994:text:text:2:3255
10079:1994:text:text:4:5050 10085:1996:time:time:1:1107 10086:1996:time:time:4:5051 10088:2000:timetz:timetz:1:1358
10089:2000:timetz:timetz:4:5051 10103:2968:uuid:uuid:1:2960 10104:2968:uuid:uuid:2:3300 10105:2968:uuid:uuid:4:5051
10106:2994:record:record:1:2987 10112:3522:anyenum:anyenum:1:3514 10113:3522:anyenum:anyenum:4:5051
10118:4033:jsonb:jsonb:1:4044
"""


def operators(facts: Facts) -> Iterator[Cells]:
    """Yields the operators."""
    types = ids_by_name()
    for one in _OPERATORS.split():
        id, name, left, right, result, commutator, negator, code, restriction, join, flags = one.split(";")
        yield {
            "oid": int(id),
            "oprname": name,
            "oprnamespace": _PG_CATALOG_ID,
            "oprowner": _OWNER_ID,
            "oprkind": "l" if left == "-" else "b",
            "oprcanmerge": "m" in flags,
            "oprcanhash": "h" in flags,
            "oprleft": types[left],
            "oprright": types[right],
            "oprresult": types[result],
            "oprcom": int(commutator),
            "oprnegate": int(negator),
            "oprcode": int(code),
            "oprrest": int(restriction),
            "oprjoin": int(join),
        }


def casts(facts: Facts) -> Iterator[Cells]:
    """Yields the casts; those that go by the text of a value are none of them, as in PostgreSQL."""
    types = ids_by_name()
    for one in _CASTS.split():
        source, target, id, function, how = one.split(":")
        yield {
            "oid": int(id),
            "castsource": types[source],
            "casttarget": types[target],
            "castfunc": int(function),
            "castcontext": how[0],
            "castmethod": how[1],
        }


def operator_families(facts: Facts) -> Iterator[Cells]:
    """Yields the families of operators."""
    for one in _FAMILIES.split():
        id, name = one.split(":")
        yield {
            "oid": int(id),
            "opfmethod": _BTREE_ID,
            "opfname": name,
            "opfnamespace": _PG_CATALOG_ID,
            "opfowner": _OWNER_ID,
        }


def operator_classes(facts: Facts) -> Iterator[Cells]:
    """Yields the classes of operators."""
    types = ids_by_name()
    for one in _CLASSES.split():
        id, name, family, type_, kept, default = one.split(":")
        yield {
            "oid": int(id),
            "opcmethod": _BTREE_ID,
            "opcname": name,
            "opcnamespace": _PG_CATALOG_ID,
            "opcowner": _OWNER_ID,
            "opcfamily": int(family),
            "opcintype": types[type_],
            "opcdefault": default == "d",
            "opckeytype": types[kept],
        }


def family_operators(facts: Facts) -> Iterator[Cells]:
    """Yields which operators are in which family."""
    types = ids_by_name()
    for one in _FAMILY_OPERATORS.split():
        id, family, left, right, place, operator = one.split(":")
        yield {
            "oid": int(id),
            "amopfamily": int(family),
            "amoplefttype": types[left],
            "amoprighttype": types[right],
            "amopstrategy": int(place),
            "amoppurpose": "s",
            "amopopr": int(operator),
            "amopmethod": _BTREE_ID,
        }


def family_functions(facts: Facts) -> Iterator[Cells]:
    """Yields which functions are in which family."""
    types = ids_by_name()
    for one in _FAMILY_FUNCTIONS.split():
        id, family, left, right, place, function = one.split(":")
        yield {
            "oid": int(id),
            "amprocfamily": int(family),
            "amproclefttype": types[left],
            "amprocrighttype": types[right],
            "amprocnum": int(place),
            "amproc": int(function),
        }


@cache
def operator_class_of(type_: int) -> int:
    """Returns the object id of the class by which an index orders values of a type; 0 if none does."""
    types = ids_by_name()
    names = {id: name for name, id in types.items()}
    name = names.get(type_, "anyenum")
    wanted = "anyarray" if name.startswith("_") else _ORDERED_AS.get(name, name)
    parts = (one.split(":") for one in _CLASSES.split())
    return next((int(id) for id, _, _, kind, _, default in parts if kind == wanted and default == "d"), 0)


#: Types whose values are ordered as those of another.
_ORDERED_AS = {"varchar": "text", "regclass": "oid", "regtype": "oid", "regproc": "oid"}
